/**
 * A view of plain data through which it cannot be changed, at any depth. A key function gets it, so
 * that reading the key never alters what the handler sees. Copies nothing.
 */
export function readonlyView<T>(value: T): T {
  return typeof value === 'object' && value !== null ? (new Proxy(value, READ_ONLY) as T) : value;
}

const refuse = (): never => {
  throw new TypeError('the payload may only be read here, not changed');
};

const READ_ONLY: ProxyHandler<object> = {
  get: (target, property) => readonlyView(Reflect.get(target, property) as unknown),
  getOwnPropertyDescriptor: (target, property) => {
    const descriptor = Reflect.getOwnPropertyDescriptor(target, property);
    return descriptor && { ...descriptor, value: readonlyView(descriptor.value as unknown) };
  },
  set: refuse,
  defineProperty: refuse,
  deleteProperty: refuse,
  setPrototypeOf: refuse,
  preventExtensions: refuse,
};
