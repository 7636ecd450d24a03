// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import CNATS
import Foundation

/// A server, or the servers of a cluster, and how to show who you are.
///
/// ```swift
/// let server = NATSServer.url("tls://nats.example.org:4222", credentials: .file("billing.creds"))
/// ```
public struct NATSServer: Sendable {
  /// Whom the server takes the client for.
  public enum Credentials: Sendable {
    /// What the URL says, which may have a user and a password without `"` and `\`:
    /// `nats://user:password@host:4222`.
    case none
    case user(String, password: String)
    case token(String)
    /// A file with the user's token and seed, as the tools of NATS write it (`.creds`).
    case file(String)
    /// The public key of an NKey, and the file with its seed.
    case nkey(String, seedFile: String)
  }

  /// How the connection is encrypted. A URL with `tls://` is enough to have it encrypted, with the authorities of the
  /// system, or nothing is sent: for all servers, if one of several URLs has it. All files are in PEM form.
  public struct TLS: Sendable {
    /// The authorities to trust; nil for those of the system.
    public var authorities: String?
    /// The certificate to show to the server, and its key. A server that wants another one breaks the connection
    /// without a word, so that the error's reason is ``NATSBridgeError/Reason/other``.
    public var certificate: (chain: String, key: String)?

    public init(authorities: String? = nil, certificate: (chain: String, key: String)? = nil) {
      self.authorities = authorities
      self.certificate = certificate
    }
  }

  let urls: [String]
  let credentials: Credentials
  /// Whether they sign what the server asks.
  var signs: Bool {
    switch credentials {
    case .nkey, .file: true
    default: false
    }
  }
  let tls: TLS?
  /// Whether nothing may be sent in clear. The client itself takes no notice of what stands before `://`.
  private var encrypts: Bool { tls != nil || urls.contains { Self.scheme(of: $0) == "tls" } }
  /// Where they are, for errors.
  var places: String { urls.map(Self.place).joined(separator: ", ") }

  /// A URL without what says who the client is: a text may go anywhere.
  static func place(of url: String) -> String {
    // The last one, as the client takes it: a password may have others.
    url.lastIndex(of: "@").map { String(url[$0...].dropFirst()) } ?? url
  }

  /// What stands before `://`, in small letters; nil if there is none. By bytes, as the client looks for it.
  private static func scheme(of url: String) -> String? {
    let bytes = Array(url.utf8)
    guard let end = bytes.indices.first(where: { bytes[$0...].starts(with: "://".utf8) }) else { return nil }
    return String(decoding: bytes[..<end], as: UTF8.self).drop(while: \.isWhitespace).lowercased()
  }

  /// The servers of a cluster. The client connects to any one of them, and to another one when that fails.
  ///
  /// There is at least one URL. Each begins with `nats://` or `tls://`, or with the host; a bridge throws an error for
  /// others.
  public static func urls(_ urls: [String], credentials: Credentials = .none, tls: TLS? = nil) -> NATSServer {
    NATSServer(urls: urls, credentials: credentials, tls: tls)
  }

  /// One server, or one of a cluster, which names the others.
  public static func url(_ url: String, credentials: Credentials = .none, tls: TLS? = nil) -> NATSServer {
    urls([url], credentials: credentials, tls: tls)
  }

  /// Writes them into the client's options.
  ///
  /// - Parameter waits: Whether it is to connect at any later time.
  func apply(to options: OpaquePointer?, waits: Bool) throws(NATSBridgeError) {
    try checkURLs()
    // If the last server that it tries at first (in an order by chance) takes the connection and then fails, the client
    // (3.4.1 to 3.6) gives up for ever; if that is not there, it goes on. So the last one is at a port at which none is.
    let urls = waits ? urls.shuffled() + ["nats://127.0.0.1:0"] : urls
    if waits { try NATSBridgeError.check(natsOptions_SetNoRandomize(options, true), "keep the order of the servers") }
    // The client copies the strings.
    var copies = urls.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    let status = copies.withUnsafeMutableBufferPointer { copies in
      copies.withMemoryRebound(to: UnsafePointer<CChar>?.self) {
        natsOptions_SetServers(options, $0.baseAddress, Int32($0.count))
      }
    }
    try NATSBridgeError.check(status, "take \(places) for servers")
    switch credentials {
    case .none: break
    case .user(let user, let password):
      try NATSBridgeError.check(natsOptions_SetUserInfo(options, user.inJSON, password.inJSON), "take the user")
    case .token(let token):
      try NATSBridgeError.check(natsOptions_SetToken(options, token.inJSON), "take the token")
    case .file(let file):
      try check(file)
      try NATSBridgeError.check(
        natsOptions_SetUserCredentialsFromFiles(options, file, nil), "take the credentials of \(file)")
    case .nkey(let key, let seedFile):
      try check(seedFile)
      try NATSBridgeError.check(natsOptions_SetNKeyFromSeed(options, key, seedFile), "take the key \(key)")
    }
    guard encrypts else { return }
    try NATSBridgeError.check(natsOptions_SetSecure(options, true), "encrypt the connection")
    guard let tls else { return }
    if let authorities = tls.authorities {
      try NATSBridgeError.check(
        natsOptions_LoadCATrustedCertificates(options, authorities), "read the authorities of \(authorities)")
    }
    if let (chain, key) = tls.certificate {
      try NATSBridgeError.check(
        natsOptions_LoadCertificatesChain(options, chain, key), "read the certificate of \(chain)")
    }
  }

  /// Throws unless there are URLs of NATS. The client (3.4.1) would connect in clear for `wss://`, and writes where it
  /// must not for one of spaces.
  private func checkURLs() throws(NATSBridgeError) {
    let example = "give one such as nats://localhost:4222."
    guard !urls.isEmpty else {
      throw NATSBridgeError(.other, "A bridge needs the URL of at least one server, and got none: \(example)")
    }
    for url in urls {
      guard !url.allSatisfy(\.isWhitespace) else {
        throw NATSBridgeError(.other, "Each server of a bridge has a URL, and one of (\(places)) is empty: \(example)")
      }
      // It would end the text for the client.
      guard !url.utf8.contains(0) else {
        throw NATSBridgeError(
          .other, "The URL of a server has no zero, and one of the \(urls.count) has one: \(example)")
      }
      guard !Self.place(of: url).contains(",") else {
        throw NATSBridgeError(
          .other,
          """
          Each server of a bridge has a URL of its own, and "\(Self.place(of: url))" has several: pass them to urls(_:).
          """)
      }
      let port = Self.place(of: url).split(separator: ":", omittingEmptySubsequences: false).dropFirst().last ?? ""
      guard !port.allSatisfy({ ("0"..."9").contains($0) }) || port.isEmpty || UInt16(port) != nil else {
        throw NATSBridgeError(
          .other, "The port of a server is at most 65535, and that of \(Self.place(of: url)) is higher: \(example)")
      }
      guard let scheme = Self.scheme(of: url), !["nats", "tls"].contains(scheme) else { continue }
      throw NATSBridgeError(
        .other,
        """
        The URL of a server begins with nats:// or tls://, or with the host, and that of \(Self.place(of: url)) begins \
        otherwise. A bridge talks to servers in the protocol of NATS alone: give the address where they take that.
        """)
    }
  }

  /// Throws unless there is a file. The client reads it when it connects, and then tells of an error alone.
  private func check(_ file: String) throws(NATSBridgeError) {
    guard access(file, R_OK) != 0 else { return }
    throw NATSBridgeError(
      .other, "The client of NATS could not read \(file): \(String(cString: strerror(errno))). Look where the file is.")
  }
}

extension String {
  /// As it stands between the quotes of a text of JSON, into which the client (3.4.1) puts strings as they are.
  var inJSON: String {
    unicodeScalars.reduce(into: "") { text, scalar in
      switch scalar {
      case "\"", "\\": text += "\\\(scalar)"
      case "\0"..<" ": text += "\\u00" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
      default: text.unicodeScalars.append(scalar)
      }
    }
  }
}
