const UNITS: Readonly<Record<string, number>> = {
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 1024,
  mib: 1024 ** 2,
  gib: 1024 ** 3,
  tib: 1024 ** 4,
};

/** Reads `1500`, `16MB`, `1.5 GB` or `64 MiB`; undefined if it is none of these. */
export function parseBytes(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,15}(?:\.\d{1,3})?)\s*([A-Za-z]*)$/.exec(text.trim()) ?? [];
  const factor = unit === '' ? 1 : UNITS[unit?.toLowerCase() ?? ''];
  if (digits === undefined || factor === undefined) return undefined;
  const bytes = Math.round(Number(digits) * factor);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** `1.2 MB` */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${Math.round(bytes)} bytes`;
  const kilobytes = bytes / 1000;
  if (kilobytes < 1000) return `${kilobytes.toFixed(kilobytes < 10 ? 1 : 0)} kB`;
  return kilobytes < 1_000_000
    ? `${(kilobytes / 1000).toFixed(1)} MB`
    : `${(kilobytes / 1_000_000).toFixed(1)} GB`;
}
