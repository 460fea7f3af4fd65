/**
 * Leaves out the fields that are null: the public document says that they are strings, and clients that are
 * made from it refuse anything else.
 */
export function withoutUnset<T extends object>(fields: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)) as {
    [K in keyof T]?: NonNullable<T[K]>;
  };
}
