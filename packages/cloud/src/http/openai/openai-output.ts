/**
 * The response in the output of a job, as JSON text. A generator handler produces a list, whose only element
 * is the response. Undefined if there is none.
 */
export function completionJson(output: string | null): string | undefined {
  if (output === null) return undefined;
  const list = jsonArrayElements(output);
  if (list === undefined || list.length > 1) return output;
  return list[0];
}

/** The elements of a JSON array, as text; undefined if it is not an array. */
export function jsonArrayElements(text: string): string[] | undefined {
  const trimmed = text.trim();
  if (!trimmed.startsWith('[')) return undefined;
  const elements: string[] = [];
  let depth = 0;
  let inString = false;
  let from = 1;
  for (let at = 0; at < trimmed.length; at += 1) {
    const code = trimmed.charCodeAt(at);
    if (inString) {
      if (code === 0x5c) at += 1;
      else if (code === 0x22) inString = false;
      continue;
    }
    if (code === 0x22) inString = true;
    else if (code === 0x5b || code === 0x7b) depth += 1;
    else if (code === 0x5d || code === 0x7d) depth -= 1;
    else if (code !== 0x2c || depth !== 1) continue;
    else {
      elements.push(trimmed.slice(from, at).trim());
      from = at + 1;
    }
  }
  const last = trimmed.slice(from, -1).trim();
  return last === '' ? elements : [...elements, last];
}
