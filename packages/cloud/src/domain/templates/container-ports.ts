/** The most HTTP ports that one container may declare. */
export const MAX_HTTP_PORTS = 10;

/** TCP ports from here on ask for the same number inside and outside. */
const MIN_SYMMETRIC_PORT = 70000;
const MAX_SYMMETRIC_PORT = 79999;
const MAX_PORT = 65535;

/** Splits `"8888/http,22/tcp"`, and lists whose items are such texts, into single entries. */
export function splitPorts(ports: string | readonly string[]): string[] {
  const entries = typeof ports === 'string' ? [ports] : ports;
  return entries
    .flatMap((entry) => entry.split(','))
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

export function portFindings(ports: readonly string[]): string[] {
  const findings = ports
    .filter((entry) => !isPort(entry))
    .map(
      (entry) =>
        `port ${JSON.stringify(entry.slice(0, 32))} must be <number>/http or <number>/tcp with a ` +
        `number from 1 to ${MAX_PORT}`,
    );
  const http = ports.filter((entry) => entry.endsWith('/http')).length;
  if (http > MAX_HTTP_PORTS)
    findings.push(`at most ${MAX_HTTP_PORTS} HTTP ports may be exposed, got ${http}`);
  const seen = new Set<string>();
  const twice = ports.find((entry) => seen.size === seen.add(entry).size);
  if (twice !== undefined) findings.push(`port ${JSON.stringify(twice.slice(0, 32))} is listed twice`);
  return findings;
}

function isPort(entry: string): boolean {
  const match = /^(\d{1,5})\/(http|tcp)$/.exec(entry);
  if (match === null) return false;
  const port = Number(match[1]);
  if (port >= 1 && port <= MAX_PORT) return true;
  return match[2] === 'tcp' && port >= MIN_SYMMETRIC_PORT && port <= MAX_SYMMETRIC_PORT;
}
