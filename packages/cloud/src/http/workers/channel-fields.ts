/** `<n>` or `<n> <m>` */
export function parseCounts(rest: string): [number, number] {
  const [first = '', second = ''] = rest.split(' ');
  return [Math.max(0, Number.parseInt(first, 10) || 0), Math.max(0, Number.parseInt(second, 10) || 0)];
}

/** `<jobId> <lease>` */
export function parseJobAndLease(rest: string): [string, string] {
  const space = rest.indexOf(' ');
  if (space === -1) throw new Error('a line with too few fields');
  return [rest.slice(0, space), rest.slice(space + 1)];
}

/** `<lease>`, or `<lease>~<milliseconds>` if the job waited in the worker before its start. */
export function parseLeaseAndWait(held: string): [lease: string, milliseconds: number] {
  const mark = held.indexOf('~');
  return mark === -1
    ? [held, 0]
    : [held.slice(0, mark), Math.max(0, Number.parseInt(held.slice(mark + 1), 10) || 0)];
}

/** `<jobId> <lease> <json>` */
export function parseJobLeaseAndBody(rest: string): [string, string, string] {
  const first = rest.indexOf(' ');
  const second = rest.indexOf(' ', first + 1);
  if (first === -1 || second === -1) throw new Error('a line with too few fields');
  return [rest.slice(0, first), rest.slice(first + 1, second), rest.slice(second + 1)];
}
