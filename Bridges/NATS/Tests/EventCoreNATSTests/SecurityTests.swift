// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

import EventCore
import EventCoreNATS
import Foundation
import Testing

/// Who may connect to a server, and to which server a bridge connects: each means of the client's, with what is right,
/// what is wrong, and nothing.
@Suite struct SecurityTests {
  /// Nil if the bridge came in, and an event went from one to another; or else why not.
  private func refusal(
    _ server: ServerProcess, _ credentials: NATSServer.Credentials = .none, tls: NATSServer.TLS? = nil,
    url: String? = nil
  ) async throws -> NATSBridgeError.Reason? {
    let (here, there) = (EventCentral(), EventCentral())
    let place = NATSServer.url(url ?? server.url, credentials: credentials, tls: tls)
    let sender: NATSBridge
    do {
      sender = try await NATSBridge(place, on: here)
    } catch {
      #expect("\(error)".hasPrefix("The client of NATS could not "))
      return error.reason
    }
    let receiver = try await NATSBridge(place, on: there)
    let log = Log<Int>()
    Reading.addListener(nil, { event in log.append(event.number) }, executeOn: .listenerThread, on: there)
    try receiver.subscribe(Reading.self)
    try await receiver.settle()
    sender.publish(Reading.self)
    Reading(number: 1).queue(on: here)
    #expect(await log.entries(atLeast: 1) == [1])
    #expect(await sender.drain())
    await receiver.drain()
    return nil
  }

  @Test("a user and a password")
  func user() async throws {
    let server = try ServerProcess(configuration: "authorization { user: anna, password: secret }")
    #expect(try await refusal(server, .user("anna", password: "secret")) == nil)
    #expect(try await refusal(server, url: "nats://anna:secret@127.0.0.1:\(server.port)") == nil)
    #expect(try await refusal(server, .user("anna", password: "Secret")) == .refused)
    #expect(try await refusal(server, .user("otto", password: "secret")) == .refused)
    #expect(try await refusal(server, .token("secret")) == .refused)
    #expect(try await refusal(server) == .refused)
  }

  @Test("an error names the server, and not the password of its URL")
  func passwords() async throws {
    let server = try ServerProcess(configuration: "authorization { user: anna, password: secret }")
    let place = "127.0.0.1:\(server.port)"
    // Not let in, and not even taken for URLs.
    for urls in [["nats://anna:se@cret@\(place)"], ["nats://anna:se@cret@\(place)", ""]] {
      let error = await #expect(throws: NATSBridgeError.self) { try await NATSBridge(.urls(urls), on: EventCentral()) }
      let text = error?.description ?? ""
      #expect(text.contains(place) && !text.contains("cret") && !text.contains("anna"), "\(text)")
    }
  }

  @Test("a token")
  func token() async throws {
    let server = try ServerProcess(configuration: "authorization { token: t0ken }")
    #expect(try await refusal(server, .token("t0ken")) == nil)
    #expect(try await refusal(server, .token("token")) == .refused)
    #expect(try await refusal(server, .user("t0ken", password: "t0ken")) == .refused)
    #expect(try await refusal(server) == .refused)
  }

  @Test("an NKey")
  func nkey() async throws {
    let folder = try SecretFolder()
    let (key, other) = (try NKey(.user, in: folder), try NKey(.user, in: folder))
    let seedFile = try folder.write(key.seed, to: "user.nk")
    let otherFile = try folder.write(other.seed, to: "other.nk")
    let server = try ServerProcess(configuration: "authorization { users: [ { nkey: \(key.publicKey) } ] }")
    #expect(try await refusal(server, .nkey(key.publicKey, seedFile: seedFile)) == nil)
    // The seed of another one, another one altogether, and none.
    #expect(try await refusal(server, .nkey(key.publicKey, seedFile: otherFile)) == .refused)
    #expect(try await refusal(server, .nkey(other.publicKey, seedFile: otherFile)) == .refused)
    #expect(try await refusal(server) == .refused)
    #expect(try await refusal(server, .nkey(key.publicKey, seedFile: folder.path("nowhere"))) == .other)
    let noSeed = try folder.write("no seed", to: "none.nk")
    #expect(try await refusal(server, .nkey(key.publicKey, seedFile: noSeed)) == .other)
  }

  @Test("a file of credentials")
  func credentialsFile() async throws {
    let folder = try SecretFolder()
    let (known, unknown) = (try Identity(in: folder), try Identity(in: folder))
    let server = try ServerProcess(configuration: known.configuration)
    #expect(try await refusal(server, .file(known.file)) == nil)
    #expect(try await refusal(server, .file(unknown.file)) == .refused)
    #expect(try await refusal(server) == .refused)
    #expect(try await refusal(server, .file(folder.path("nowhere.creds"))) == .other)
    let empty = try folder.write("", to: "empty.creds")
    #expect(try await refusal(server, .file(empty)) == .refused, "Nothing to show is nothing shown.")
  }

  @Test("TLS: the server shows a certificate, which an authority that the bridge trusts has signed for its name")
  func serverCertificate() async throws {
    let folder = try SecretFolder()
    let authorities = try folder.makeAuthority("right")
    let others = try folder.makeAuthority("wrong")
    let certificate = try folder.makeCertificate("server", for: "localhost", by: "right")
    let elsewhere = try folder.makeCertificate("elsewhere", for: "elsewhere.example", by: "right")
    let server = try ServerProcess(configuration: tls(certificate))
    let url = "tls://localhost:\(server.port)"
    #expect(try await refusal(server, tls: .init(authorities: authorities), url: url) == nil)
    // The server tells that it wants TLS, so that a URL without it comes in as well.
    let plain = "nats://localhost:\(server.port)"
    #expect(try await refusal(server, tls: .init(authorities: authorities), url: plain) == nil)
    #expect(try await refusal(server, tls: .init(authorities: others), url: url) == .refused)
    // The authorities of the system know nothing of this one.
    #expect(try await refusal(server, tls: .init(), url: url) == .refused)
    #expect(try await refusal(server, url: url) == .refused)
    #expect(try await refusal(server, url: plain) == .refused)
    #expect(try await refusal(server, tls: .init(authorities: folder.path("nowhere.pem")), url: url) == .refused)
    // Signed by the right authority, for another host.
    let impostor = try ServerProcess(configuration: tls(elsewhere))
    #expect(
      try await refusal(impostor, tls: .init(authorities: authorities), url: "tls://localhost:\(impostor.port)")
        == .refused)
    // A bridge that wants TLS does not talk to a server without.
    let open = try ServerProcess()
    #expect(
      try await refusal(open, tls: .init(authorities: authorities), url: "tls://localhost:\(open.port)") == .refused)
  }

  @Test("TLS: the bridge shows a certificate as well, if the server asks for one")
  func clientCertificate() async throws {
    let folder = try SecretFolder()
    let authorities = try folder.makeAuthority("right")
    _ = try folder.makeAuthority("wrong")
    let certificate = try folder.makeCertificate("server", for: "localhost", by: "right")
    let own = try folder.makeCertificate("client", for: "client.example", by: "right")
    let other = try folder.makeCertificate("other", for: "client.example", by: "wrong")
    let server = try ServerProcess(configuration: tls(certificate, "ca_file: \"\(authorities)\"\n verify: true"))
    let url = "tls://localhost:\(server.port)"
    #expect(try await refusal(server, tls: .init(authorities: authorities, certificate: own), url: url) == nil)
    // The server breaks the connection, which the client takes for a fault of it.
    #expect(try await refusal(server, tls: .init(authorities: authorities, certificate: other), url: url) == .other)
    #expect(try await refusal(server, tls: .init(authorities: authorities), url: url) == .other)
    // The certificate of one and the key of another.
    let mixed = (chain: own.chain, key: other.key)
    #expect(try await refusal(server, tls: .init(authorities: authorities, certificate: mixed), url: url) == .refused)
  }

  @Test("TLS: a URL with tls:// is enough, and a server without gets no word in clear", arguments: ["tls", " TLS"])
  func scheme(_ scheme: String) async throws {
    let heard = Log<String>()
    // Also if another server of the cluster has no such URL.
    for others in [[], ["nats://127.0.0.1:0"]] {
      let server = try ScriptedServer { line in
        heard.append(line)
        return nil
      }
      let urls = [scheme + server.url.dropFirst("nats".count)] + others
      let reason = await refusal(of: .urls(urls, credentials: .user("anna", password: "secret")))
      #expect(others.isEmpty ? reason == .refused : reason != nil, "\(reason as Any)")
    }
    #expect(heard.entries == [])
  }

  @Test("a URL of another scheme is an error, and nothing is sent in clear; one without a scheme is taken")
  func otherSchemes() async throws {
    let heard = Log<String>()
    let scripted = try ScriptedServer { line in
      heard.append(line)
      return nil
    }
    let place = scripted.url.dropFirst("nats://".count)
    // The last one has a sign of no width behind the slashes, as text from elsewhere may have.
    for urls in [
      ["wss://\(place)"], ["https://\(place)"], ["\(place)", "ws://anna:secret@\(place)"], ["wss://\u{200D}x@\(place)"],
    ] {
      let error = await #expect(throws: NATSBridgeError.self) { try await NATSBridge(.urls(urls), on: EventCentral()) }
      let text = error?.description ?? ""
      #expect(text.contains("nats:// or tls://") && text.contains(place) && !text.contains("secret"), "\(text)")
    }
    #expect(heard.entries == [])
    let server = try ServerProcess()
    for url in ["127.0.0.1:\(server.port)", "NATS://127.0.0.1:\(server.port)"] {
      #expect(try await refusal(server, url: url) == nil)
    }
  }

  @Test("no URL at all is an error that says what to give",
    arguments: [
      [], [""], ["nats://127.0.0.1:0", " "], ["nats://127.0.0.1:99999"], ["\0"], [" \0x"], ["nats://127.0.0.1:0\0"],
    ])
  func noURL(_ urls: [String]) async {
    for waits in [false, true] {
      var options = NATSBridge.Options()
      options.waitsForServer = waits
      let error = await #expect(throws: NATSBridgeError.self) {
        try await NATSBridge(.urls(urls), on: EventCentral(), options: options)
      }
      #expect(error?.description.hasSuffix("give one such as nats://localhost:4222.") == true, "\(error as Any)")
    }
  }

  @Test("several servers in one text are an error that says where to pass them; a password may have commas")
  func severalInOne() async throws {
    let error = await #expect(throws: NATSBridgeError.self) {
      try await NATSBridge(.url("nats://anna:secret@127.0.0.1:0,nats://127.0.0.1:1"), on: EventCentral())
    }
    let text = error?.description ?? ""
    #expect(text.contains(#""127.0.0.1:0,nats://127.0.0.1:1""#) && text.contains("urls(_:)"), "\(text)")
    let server = try ServerProcess(configuration: "authorization { user: anna, password: 'se,cret' }")
    #expect(await refusal(of: .url("nats://anna:se,cret@127.0.0.1:\(server.port)")) == nil)
  }

  private func refusal(of server: NATSServer) async -> NATSBridgeError.Reason? {
    do {
      _ = try await NATSBridge(server, on: EventCentral())
      return nil
    } catch {
      return error.reason
    }
  }

  @Test("who the client is, and its name, may have quotes, backslashes and line breaks")
  func quotes() async throws {
    let server = try ServerProcess(configuration: #"authorization { user: 'an"n\a', password: 'se"cr\et' }"#)
    #expect(try await refusal(server, .user(#"an"n\a"#, password: #"se"cr\et"#)) == nil)
    #expect(try await refusal(server, .user(#"an"n\a"#, password: #"secr\et"#)) == .refused)
    let other = try ServerProcess(configuration: #"authorization { token: 't0"k\en' }"#)
    #expect(try await refusal(other, .token(#"t0"k\en"#)) == nil)
    // A name that would end its text, and have what this bridge sends come back to it.
    let (open, world) = (try ServerProcess(), EventCentral())
    for name in [#"Hall "2" \"#, "two\r\nlines\t\0", #"x","echo":true,"lang":"y"#] {
      let bridge = try await NATSBridge.to(open, on: world) { ($0.name, $0.connectTimeout) = (name, .seconds(5)) }
      try bridge.subscribe(Reading.self)
      bridge.publish(Reading.self)
      Reading(number: 1).queue(on: world)
      #expect(await bridge.drain())
      #expect(bridge.counts.sent == 1 && bridge.counts.own == 0, "\(name)")
    }
  }

  private func tls(_ certificate: (chain: String, key: String), _ more: String = "") -> String {
    "tls {\n cert_file: \"\(certificate.chain)\"\n key_file: \"\(certificate.key)\"\n \(more)\n}"
  }

  @Test("a bridge that waits for its server ends when that turns it away for good, and its status tells")
  func waiting() async throws {
    let server = try ServerProcess(configuration: "authorization { token: t0ken }")
    let world = EventCentral()
    let log = Log<NATSStatus.Change>()
    NATSStatus.addListener(nil, { status in log.append(status.change) }, executeOn: .listenerThread, on: world)
    var options = NATSBridge.Options()
    options.waitsForServer = true
    options.reconnecting = .init(first: .milliseconds(1), longest: .milliseconds(5))
    let bridge = try await NATSBridge(
      .url(server.url, credentials: .token("token")), on: world, options: options)
    bridge.publish(Reading.self)
    Reading(number: 1).queue(on: world)
    #expect(await eventually(within: .seconds(20)) { log.entries.last == .closed })
    guard case .fault(let words)? = log.entries.first else {
      Issue.record("\(log.entries)")
      return
    }
    #expect(words.contains("Authorization Violation"), "\(words)")
    #expect(await !bridge.drain())
    #expect(bridge.counts.unsent == 1)
  }

  @Test("what a user may not do is a fault in the status, and the bridge goes on")
  func permissions() async throws {
    let server = try ServerProcess(
      configuration: """
        authorization { users: [ { user: a, password: b, permissions: {
          publish: { deny: "tests.order" }, subscribe: { deny: "tests.order" } } } ] }
        """)
    let world = EventCentral()
    let faults = Log<String>()
    NATSStatus.addListener(
      nil, { status in if case .fault(let text) = status.change { faults.append(text) } },
      executeOn: .listenerThread, on: world)
    let bridge = try await NATSBridge(.url(server.url, credentials: .user("a", password: "b")), on: world)
    try bridge.subscribe(Order.self)
    #expect(await faults.entries(atLeast: 1).count == 1)
    bridge.publish(Order.self)
    Order(number: 1).queue(on: world)
    let told = await faults.entries(atLeast: 2)
    #expect(told.count == 2 && told.allSatisfy { $0.contains("tests.order") }, "\(told)")
    #expect(bridge.isConnected)
    #expect(await bridge.drain())
    #expect(bridge.counts.sent == 1 && bridge.counts.unsent == 0)
  }
}
