/** A promise and the way to end it. */
export function gate<T = void>() {
  return Promise.withResolvers<T>();
}
