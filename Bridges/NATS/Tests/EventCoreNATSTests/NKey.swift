// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import Foundation

/// A key pair of NATS: Ed25519, written in base 32 behind a byte that says whose it is.
struct NKey {
  /// The byte before the public key.
  enum Owner: UInt8 { case `operator` = 0x70, account = 0, user = 0xA0 }

  let seed: String
  let publicKey: String
  private let key: String

  init(_ owner: Owner, in folder: SecretFolder) throws {
    key = folder.path("\(UUID().uuidString).der")
    let open = folder.path("public.der")
    try folder.openssl("genpkey", "-algorithm", "ed25519", "-outform", "DER", "-out", key)
    try folder.openssl("pkey", "-inform", "DER", "-in", key, "-pubout", "-outform", "DER", "-out", open)
    // The raw keys are at the end of both forms.
    let raw = try Data(contentsOf: URL(filePath: key)).suffix(32)
    let rawPublic = try Data(contentsOf: URL(filePath: open)).suffix(32)
    seed = Self.text([0x90 | owner.rawValue >> 5, owner.rawValue << 3] + raw)
    publicKey = Self.text([owner.rawValue] + rawPublic)
  }

  /// In base 32 without padding, with a checksum of two bytes, the lower one first.
  private static func text(_ bytes: [UInt8]) -> String {
    let sum = bytes.reduce(UInt16(0)) { sum, byte in
      (0..<8).reduce(sum ^ UInt16(byte) << 8) { sum, _ in sum & 0x8000 == 0 ? sum << 1 : sum << 1 ^ 0x1021 }
    }
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    var (text, rest, bits) = ("", 0, 0)
    for byte in bytes + [UInt8(truncatingIfNeeded: sum), UInt8(sum >> 8)] {
      (rest, bits) = (rest << 8 | Int(byte), bits + 8)
      while bits >= 5 {
        bits -= 5
        text.append(letters[rest >> bits & 31])
      }
      rest &= 1 << bits - 1
    }
    if bits > 0 { text.append(letters[rest << (5 - bits) & 31]) }
    return text
  }

  /// What this key says of another one, signed: a JSON Web Token in NATS' own form.
  func token(for subject: NKey, _ claims: String, in folder: SecretFolder) throws -> String {
    func base64(_ data: Data) -> String {
      data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
    let header = #"{"typ":"JWT","alg":"ed25519-nkey"}"#
    let body = """
      {"jti":"\(UUID().uuidString)","iat":1700000000,"iss":"\(publicKey)","name":"test","sub":"\(subject.publicKey)",\
      "nats":{"version":2,\(claims)}}
      """
    let text = base64(Data(header.utf8)) + "." + base64(Data(body.utf8))
    // Not by the client, which knows nothing of operators.
    let (file, signature) = (try folder.write(text, to: "token"), folder.path("signature"))
    try folder.openssl(
      "pkeyutl", "-sign", "-rawin", "-keyform", "DER", "-inkey", key, "-in", file, "-out", signature)
    return text + "." + base64(try Data(contentsOf: URL(filePath: signature)))
  }
}

/// An operator, an account and a user, as the tools of NATS make them.
struct Identity {
  /// What the server has to know.
  let configuration: String
  /// The file of the user.
  let file: String

  init(in folder: SecretFolder) throws {
    let top = try NKey(.operator, in: folder)
    let (account, user) = (try NKey(.account, in: folder), try NKey(.user, in: folder))
    let limits = #""subs":-1,"data":-1,"payload":-1"#
    let topToken = try top.token(for: top, #""type":"operator""#, in: folder)
    let accountToken = try top.token(
      for: account,
      """
      "type":"account","limits":{\(limits),"conn":-1,"leaf":-1,"imports":-1,"exports":-1,"wildcards":true},\
      "default_permissions":{"pub":{},"sub":{}}
      """, in: folder)
    let userToken = try account.token(for: user, #""type":"user",\#(limits),"pub":{},"sub":{}"#, in: folder)
    configuration = """
      operator: \(topToken)
      resolver: MEMORY
      resolver_preload: { \(account.publicKey): \(accountToken) }
      """
    file = try folder.write(
      """
      -----BEGIN NATS USER JWT-----
      \(userToken)
      ------END NATS USER JWT------

      -----BEGIN USER NKEY SEED-----
      \(user.seed)
      ------END USER NKEY SEED------

      """, to: "\(UUID().uuidString).creds")
  }
}
