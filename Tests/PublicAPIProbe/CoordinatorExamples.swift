// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

// The examples of the page Coordinators, with the public interface alone.

import EventCore
import Testing

/// Everything is in a namespace, since other pages have views of their own.
enum ShopExample {
  // "The views": a hierarchy of one's own, where UIKit would bring it.

  class View: EventResponder {
    private(set) weak var superview: View?
    private(set) var subviews: [View] = []

    var nextResponder: (any EventResponder)? { superview }

    func add(_ view: View) {
      subviews.append(view)
      view.superview = self
    }
  }

  class ViewController: View {}

  // "What can happen"

  struct Product: Hashable {
    var name: String
  }

  struct ShopEvents {
    enum Products: CoordinateEvents, Equatable {
      case setFavorite(_ product: Product)
      case didSelect(_ product: Product)
    }

    enum Cart: CoordinateEvents, Equatable {
      case didPay
    }
  }

  // "Emit it where it happens"

  final class FavoriteButton: View {
    let product: Product

    init(product: Product) { self.product = product }

    func tapped() {
      emitEvent(ShopEvents.Products.setFavorite(product))
    }
  }

  final class ProductCell: View {
    let favoriteButton: FavoriteButton

    init(_ product: Product) {
      favoriteButton = FavoriteButton(product: product)
      super.init()
      add(favoriteButton)
    }
  }

  final class ShopViewController: ViewController, Coordinated {
    weak var parentCoordinator: Coordinator?
    let cells: [ProductCell]

    init(_ products: [Product]) {
      cells = products.map(ProductCell.init)
      super.init()
      cells.forEach(add)
    }
  }

  final class ProductViewController: ViewController, Coordinated {
    weak var parentCoordinator: Coordinator?
    let product: Product

    init(_ product: Product) { self.product = product }
  }

  // "Intercept it where it is decided"

  final class ShopCoordinator: TypedCoordinator<ShopViewController> {
    private(set) var favorites: Set<Product> = []

    override init(rootViewController: ShopViewController) {
      super.init(rootViewController: rootViewController)
      intercept(ShopCoordinator.onProducts)
    }

    func onProducts(_ event: ShopEvents.Products) -> EventInterception {
      switch event {
      case .setFavorite(let product):
        favorites.insert(product)
        return .pass
      case .didSelect(let product):
        startChild(ProductCoordinator(rootViewController: ProductViewController(product)))
        return .handled
      }
    }
  }

  final class ProductCoordinator: TypedCoordinator<ProductViewController> {}

  final class AppCoordinator: Coordinator {
    private(set) var profileBadge = 0

    override func interceptEvent(_ event: CoordinateEvents) -> Bool {
      guard case ShopEvents.Products.setFavorite = event else { return false }
      profileBadge += 1
      return true
    }
  }

  // "Responders on the way"

  final class CartViewController: ViewController, EventIntercepting {
    private(set) var isPaid = false

    func intercept(_ event: any CoordinateEvents) -> EventInterception {
      guard case ShopEvents.Cart.didPay = event else { return .pass }
      isPaid = true
      return .handled
    }
  }
}

/// "Where a generic Coordinator was used".
enum GenericExample {
  typealias Coordinator<Root: Coordinated> = TypedCoordinator<Root>

  final class TeamsCoordinator: Coordinator<ShopExample.ShopViewController> {
    init() { super.init(rootViewController: ShopExample.ShopViewController([])) }
  }
}

@Suite("The examples of Coordinators compile and run")
struct CoordinatorExamples {
  typealias Product = ShopExample.Product

  @Test("a favourites button deep in the views reaches the coordinators")
  func shop() {
    let products = [Product(name: "kettle"), Product(name: "teapot")]
    let app = ShopExample.AppCoordinator()
    let shop = ShopExample.ShopCoordinator(
      rootViewController: ShopExample.ShopViewController(products))
    app.start()
    app.startChild(shop)

    shop.rootViewController.cells[1].favoriteButton.tapped()
    #expect(shop.favorites == [Product(name: "teapot")])
    #expect(app.profileBadge == 1)

    let cell = shop.rootViewController.cells[0]
    #expect(cell.emitEvent(ShopExample.ShopEvents.Products.didSelect(products[0])) == .handled)
    #expect(shop.childCoordinators.count == 1)
    #expect(app.profileBadge == 1)
    // From the product's screen, through its coordinator and the shop's, to the app's.
    let product = shop.childCoordinators[0] as? ShopExample.ProductCoordinator
    product?.rootViewController.emitEvent(ShopExample.ShopEvents.Products.setFavorite(products[0]))
    #expect(shop.favorites.count == 2)
    #expect(app.profileBadge == 2)

    if cell.emitEvent(ShopExample.ShopEvents.Cart.didPay) == .unhandled {
      print("nobody takes payments here")
    }
    app.stop()
    #expect(cell.emitEvent(ShopExample.ShopEvents.Products.didSelect(products[0])) == .unhandled)
  }

  @Test("a view controller on the way intercepts")
  func onTheWay() {
    let cart = ShopExample.CartViewController()
    let button = ShopExample.View()
    cart.add(button)
    #expect(button.emitEvent(ShopExample.ShopEvents.Cart.didPay) == .handled)
    #expect(cart.isPaid)
    #expect(cart.emitEvent(ShopExample.ShopEvents.Cart.didPay) == .unhandled)
    #expect(cart.emitEvent(ShopExample.ShopEvents.Cart.didPay, includingEmitter: true) == .handled)
  }

  @Test("an event that nobody wanted goes on to a central")
  func toCentral() {
    let world = EventCentral()
    let statistics = EventThread(on: world)
    statistics.addEventCallback { (event: ShopExample.ShopEvents.Cart) in print(event) }

    let app = ShopExample.AppCoordinator()
    app.dispatchUnhandled(to: world, priority: .low)
    #expect(app.emitEvent(ShopExample.ShopEvents.Cart.didPay) == .handled)
    app.unhandledEvents = { event in
      print("nobody wanted \(event)")
      return .pass
    }
    #expect(app.emitEvent(ShopExample.ShopEvents.Cart.didPay) == .unhandled)
    #expect(statistics.drain())
    #expect(statistics.statistics.delivered == 1)
  }

  @Test("an event that another thread dispatches is emitted")
  @MainActor
  func fromCentral() async {
    let world = EventCentral()
    let app = ShopExample.AppCoordinator()
    app.emitEvents(of: ShopExample.ShopEvents.Cart.self, from: world)
    let isHandled = await withCheckedContinuation { continuation in
      app.unhandledEvents = { _ in
        continuation.resume(returning: true)
        return .handled
      }
      ShopExample.ShopEvents.Cart.didPay.queue(on: world)
    }
    #expect(isHandled)
  }

  @Test("an event that nobody wanted goes on into a tree")
  func toTree() {
    let audit = EventNode(parent: nil)
    audit.addHandler([.onPropagate, .consumeEvent]) { (event: ShopExample.ShopEvents.Cart) in print(event) }

    let app = ShopExample.AppCoordinator()
    app.raiseUnhandled(at: audit)
    #expect(app.emitEvent(ShopExample.ShopEvents.Cart.didPay) == .handled)
  }

  @Test("an interceptor that was removed is not asked")
  func removal() {
    let coordinator = Coordinator()
    let interception = coordinator.intercept(ShopExample.ShopEvents.Cart.self) { event in
      event == .didPay ? .handled : .pass
    }
    interception.remove()
    #expect(
      coordinator.emitEvent(ShopExample.ShopEvents.Cart.didPay, includingEmitter: true)
        == .unhandled)
  }

  @Test("the generic name of a coordinator may be kept by a typealias")
  func generic() {
    let coordinator = GenericExample.TeamsCoordinator()
    #expect(coordinator.rootViewController.parentCoordinator === coordinator)
  }
}
