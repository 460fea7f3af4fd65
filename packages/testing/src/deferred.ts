/** A promise and the way to end it. */
export function deferred<T = void>() {
  return Promise.withResolvers<T>();
}
