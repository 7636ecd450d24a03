// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// Functions of the Swift runtime (ReflectionMirror.cpp), by which the standard library's `_forEachField` finds stored
// properties. They are among those that the runtime exports for good (`SWIFT_RUNTIME_STDLIB_API`).

private struct Field {
  var name: UnsafePointer<CChar>?
  var freeName: (@convention(c) (UnsafePointer<CChar>?) -> Void)?
  var isStrong = false
  var isVariable = false
}

@_silgen_name("swift_reflectionMirror_recursiveCount")
private func fieldCount(_ type: Any.Type) -> Int

@_silgen_name("swift_reflectionMirror_recursiveChildMetadata")
private func fieldType(_ type: Any.Type, _ index: Int, _ field: UnsafeMutablePointer<Field>) -> Any.Type

@_silgen_name("swift_reflectionMirror_recursiveChildOffset")
private func fieldOffset(_ type: Any.Type, _ index: Int) -> Int

/// The stored properties of the objects of a class, those of its base classes first, without those of classes of
/// Objective-C: their types, `()` for what cannot be copied, and where they lie, in bytes from the object's address. It
/// reads no object. What lies in a `weak` or `unowned` property is a reference of another form than the type.
func storedProperties(of type: AnyClass) -> [(type: Any.Type, offset: Int)] {
  (0..<fieldCount(type)).map { index in
    var field = Field()
    defer { field.freeName?(field.name) }
    return (fieldType(type, index, &field), fieldOffset(type, index))
  }
}
