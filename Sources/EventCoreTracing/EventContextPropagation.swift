// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

#if Tracing
  import EventCore
  public import Tracing

  /// What a central does with the contexts of traces: the `ServiceContext` of whoever dispatches an event travels with
  /// it, and is `ServiceContext.current` while its handlers run, wherever they do.
  ///
  /// ```swift
  /// let world = EventCentral(tracing: .contexts)
  /// OrderPlaced.addListener(nil, concurrency: .serial, on: world) { order in
  ///   try await ledger.book(order)      // in the trace of the request that placed the order
  /// }
  /// ```
  public struct EventContextPropagation: Sendable {
    let carrier: EventCarrier

    /// Contexts travel; there are no spans but your own.
    public static let contexts = EventContextPropagation(
      EventCarrier(
        capture: { ContextReference.current },
        restore: { context, _, body in ServiceContext.$current.withValue(context.value, operation: body) },
        restoreInTask: { context, _, body in
          await ServiceContext.$current.withValue(context.value) { await body() }
        },
        inject: { fields(of: $0, InstrumentationSystem.instrument) },
        extract: { context(from: $0, InstrumentationSystem.instrument) }))

    /// Contexts travel, and the handling of each event is a span: one at each receiver, around all handlers that it has
    /// for the event. It is called as the type of the event, and is of the kind `consumer`. What an `async` handler or
    /// answerer throws is recorded in its span, whose status is an error then. An event that all handlers skip has a
    /// span, too, since it begins before they are asked. Events that a sequence hands out have none.
    ///
    /// - Parameter tracer: Makes the spans; nil for the tracer of the `InstrumentationSystem`.
    public static func spans(_ tracer: (any Tracer)? = nil) -> EventContextPropagation {
      EventContextPropagation(
        EventCarrier(
          capture: { ContextReference.current },
          restore: { context, type, body in
            guard let type else { return ServiceContext.$current.withValue(context.value, operation: body) }
            let span = start(of: type, context, tracer)
            ServiceContext.$current.withValue(span.context, operation: body)
            span.end()
          },
          restoreInTask: { context, type, body in
            let span = start(of: type, context, tracer)
            await ServiceContext.$current.withValue(span.context) {
              await $asyncHandling.withValue(span) { await body() }
            }
            span.end()
          },
          noteFailure: { error in
            asyncHandling?.recordError(error)
            asyncHandling?.setStatus(SpanStatus(code: .error))
          },
          inject: { fields(of: $0, tracer ?? InstrumentationSystem.instrument) },
          extract: { context(from: $0, tracer ?? InstrumentationSystem.instrument) }))
    }

    /// The span of the `async` handler in whose task the caller runs.
    @TaskLocal private static var asyncHandling: (any Span)?

    private init(_ carrier: EventCarrier) {
      self.carrier = carrier
    }

    private static func start(
      of type: any Eventable.Type, _ context: (any EventCarrier.Value)?, _ tracer: (any Tracer)?
    ) -> any Span {
      let context = context.value ?? .topLevel
      // The name is made for each span: the system's tracer may have been set since.
      guard let tracer else { return Tracing.startSpan("\(type)", context: context, ofKind: .consumer) }
      return tracer.startSpan("\(type)", context: context, ofKind: .consumer)
    }

    /// What other machines have to know of a context.
    private static func fields(of value: any EventCarrier.Value, _ instrument: any Instrument) -> [String: String] {
      guard let context = Optional(value).value else { return [:] }
      var fields: [String: String] = [:]
      instrument.inject(context, into: &fields, using: FieldInjector())
      return fields
    }

    /// Nil if they say nothing.
    private static func context(
      from fields: [String: String], _ instrument: any Instrument
    ) -> (any EventCarrier.Value)? {
      var context = ServiceContext.topLevel
      instrument.extract(fields, into: &context, using: FieldExtractor())
      return context.isEmpty ? nil : ContextReference(context)
    }
  }

  private struct FieldInjector: Injector {
    func inject(_ value: String, forKey key: String, into fields: inout [String: String]) { fields[key] = value }
  }

  private struct FieldExtractor: Extractor {
    func extract(key: String, from fields: [String: String]) -> String? { fields[key] }
  }

  /// A context as the object that travels.
  final class ContextReference: Sendable {
    let context: ServiceContext

    init(_ context: ServiceContext) {
      self.context = context
    }

    /// That of the calling thread or task; nil if it has none, which costs no object.
    static var current: ContextReference? { ServiceContext.current.map(ContextReference.init) }
  }

  extension Optional<any EventCarrier.Value> {
    /// The context that travelled.
    var value: ServiceContext? { map { unsafeDowncast($0, to: ContextReference.self).context } }
  }
#endif
