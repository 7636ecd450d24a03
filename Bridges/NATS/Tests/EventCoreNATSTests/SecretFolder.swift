// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// Certificates and keys of one test, in a folder that goes with it.
final class SecretFolder: Sendable {
  private let folder: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "eventcore-secrets-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  deinit { try? FileManager.default.removeItem(at: folder) }

  func path(_ name: String) -> String { folder.appending(path: name).path }

  func write(_ text: String, to name: String) throws -> String {
    try Data(text.utf8).write(to: URL(filePath: path(name)))
    return path(name)
  }

  /// Runs the program `openssl`, of version 3 or later.
  func openssl(_ arguments: String...) throws {
    let program = try ServerProcess.find("openssl")
    let process = try ServerProcess.spawn(program, arguments)
    var status: Int32 = 0
    waitpid(process, &status, 0)
    guard status == 0 else { throw OpenSSLFailure(arguments: arguments, status: status) }
  }

  /// A certificate that has signed itself: an authority.
  func makeAuthority(_ name: String) throws -> String {
    try openssl(
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
      "-subj", "/CN=\(name)", "-keyout", path("\(name).key"), "-out", path("\(name).pem"))
    return path("\(name).pem")
  }

  /// A certificate that an authority has signed, for a host.
  func makeCertificate(
    _ name: String, for host: String, by authority: String
  ) throws -> (chain: String, key: String) {
    let (request, extensions) = (path("\(name).csr"), try write("subjectAltName=DNS:\(host)", to: "\(name).ext"))
    try openssl(
      "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=\(name)",
      "-keyout", path("\(name).key"), "-out", request)
    try openssl(
      "x509", "-req", "-in", request, "-CA", path("\(authority).pem"), "-CAkey", path("\(authority).key"),
      "-CAcreateserial", "-days", "2", "-extfile", extensions, "-out", path("\(name).pem"))
    return (path("\(name).pem"), path("\(name).key"))
  }
}

private struct OpenSSLFailure: Error {
  let arguments: [String]
  let status: Int32
}
