import type { Operation } from './rest-operation.ts';

/** The methods of a path, for the `Allow` header of a 405. */
export function allowedMethods(operations: readonly Operation[], path: string): string[] {
  const wanted = segments(path);
  const matching = operations.filter((operation) => matches(segments(operation.path), wanted));
  return [...new Set(matching.map((operation) => operation.method))].sort();
}

function matches(pattern: string[], path: string[]): boolean {
  return (
    pattern.length === path.length &&
    pattern.every((part, index) => (part.startsWith('{') ? path[index] !== '' : part === path[index]))
  );
}

/** Empty ones count: a path with a slash at its end is another path. */
function segments(path: string): string[] {
  return path.split('/').slice(1);
}
