/** The traceback of an error, and what else it says. */
export function readErrorDetail(detail: unknown): { traceback?: string; rest: unknown } {
  const value = typeof detail === 'string' ? parse(detail) : detail;
  if (typeof value !== 'object' || value === null) return { rest: detail };
  const { error_traceback: traceback, ...rest } = value as Record<string, unknown>;
  return { ...(typeof traceback === 'string' && { traceback }), rest };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
