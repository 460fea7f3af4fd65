/**
 * Environment variables as people paste them: lines of NAME=value, with `export`, quotes and comments
 * allowed.
 */
export function parseEnv(text: string): { env: Record<string, string>; problems: string[] } {
  const env: Record<string, string> = {};
  const problems: string[] = [];
  text.split(/\r?\n/).forEach((line, index) => {
    const trimmed = line.trim();
    if (trimmed === '' || trimmed.startsWith('#')) return;
    const [, name, value] = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$/.exec(trimmed) ?? [];
    if (name === undefined || value === undefined)
      problems.push(`Line ${index + 1} is not NAME=value: ${trimmed.slice(0, 40)}`);
    else env[name] = unquote(value);
  });
  return { env, problems };
}

export function formatEnv(env: Readonly<Record<string, string>>): string {
  return Object.entries(env)
    .map(([name, value]) => `${name}=${/^\s|\s$|^["']|\n/.test(value) ? JSON.stringify(value) : value}`)
    .join('\n');
}

function unquote(value: string): string {
  if (/^'.*'$/.test(value)) return value.slice(1, -1);
  if (!/^".*"$/.test(value)) return value;
  try {
    return String(JSON.parse(value));
  } catch {
    return value.slice(1, -1);
  }
}

/** `8888/http, 22/tcp` as a list; without a protocol it is HTTP. */
export function parsePorts(text: string): { ports: string[]; problem: string | undefined } {
  const words = text.split(/[\s,]+/).filter(Boolean);
  const wrong = words.find((word) => !/^\d{1,5}(?:\/(?:http|tcp|udp))?$/.test(word));
  return {
    ports: words.map((word) => (word.includes('/') ? word : `${word}/http`)),
    problem: wrong === undefined ? undefined : `"${wrong}" is not a port such as 8888/http or 22/tcp`,
  };
}
