type JsonObject = Record<string, unknown>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isSame(one: unknown, other: unknown): boolean {
  if (isJsonObject(one) && isJsonObject(other)) {
    const names = Object.keys(one);
    return (
      names.length === Object.keys(other).length &&
      names.every((name) => Object.hasOwn(other, name) && isSame(one[name], other[name]))
    );
  }
  if (Array.isArray(one) && Array.isArray(other))
    return one.length === other.length && one.every((item, index) => isSame(item, other[index]));
  return one === other;
}

/** The members that are the same in all objects; of nested objects too. */
export function commonMembers(objects: readonly JsonObject[]): JsonObject {
  const [first, ...others] = objects;
  if (first === undefined) return {};
  const common: JsonObject = {};
  for (const [name, value] of Object.entries(first)) {
    const values = others.map((other) => (Object.hasOwn(other, name) ? other[name] : undefined));
    if (values.every((other) => isSame(value, other))) common[name] = value;
    else if (isJsonObject(value) && values.every(isJsonObject)) {
      const nested = commonMembers([value, ...values]);
      if (Object.keys(nested).length > 0) common[name] = nested;
    }
  }
  return common;
}

/**
 * The JSON merge patch (RFC 7396) that makes one object from another: what was deleted, or set to null,
 * becomes null in it.
 */
export function patchBetween(before: JsonObject, after: JsonObject): JsonObject {
  const patch: JsonObject = {};
  for (const name of Object.keys(before)) if (!Object.hasOwn(after, name)) patch[name] = null;
  for (const [name, value] of Object.entries(after)) {
    const old = Object.hasOwn(before, name) ? before[name] : undefined;
    if (isSame(old, value)) continue;
    patch[name] = isJsonObject(old) && isJsonObject(value) ? patchBetween(old, value) : value;
  }
  return patch;
}

/** What the server makes of an input with a patch (RFC 7396). */
export function applyPatch(target: unknown, patch: JsonObject): JsonObject {
  const merged: JsonObject = isJsonObject(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else merged[name] = isJsonObject(value) ? applyPatch(merged[name], value) : value;
  }
  return merged;
}
