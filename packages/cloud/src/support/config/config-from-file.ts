import { isMapping } from './setting-type.ts';
import { settingList, type SettingPath } from './settings.ts';
import { didYouMean } from './did-you-mean.ts';
import type { ConfigSource } from './config-source.ts';

export type ReadFile = (path: string) => Promise<string>;

/**
 * Reads the configuration file. The YAML parser is loaded only here: a start without a file does without it.
 */
export async function configFromFile(file: string, readFile: ReadFile): Promise<ConfigSource> {
  const source: ConfigSource = { given: new Map(), problems: [] };
  const parsed = await parse(file, readFile);
  if ('problem' in parsed) source.problems.push(parsed.problem);
  else if (isMapping(parsed.content)) collect(parsed.content, '', file, source);
  else if (parsed.content !== null)
    source.problems.push(`${file} must hold settings such as "port: 8484", and not a list or a single value`);
  return source;
}

async function parse(file: string, readFile: ReadFile): Promise<{ content: unknown } | { problem: string }> {
  let content: string;
  try {
    content = await readFile(file);
  } catch (error) {
    return {
      problem:
        `the configuration file ${file} cannot be read: ` +
        `${error instanceof Error ? error.message : String(error)}`,
    };
  }
  const { parse: parseYaml } = await import('yaml');
  try {
    return { content: (parseYaml(content, { logLevel: 'error' }) ?? null) as unknown };
  } catch (error) {
    // The lines after the first quote the file, and with it perhaps a secret.
    const [reason = ''] = error instanceof Error ? error.message.split('\n') : [];
    return { problem: `${file} is not YAML: ${reason.replace(/:$/, '')}` };
  }
}

/**
 * A path is a setting, a section with settings below it, or unknown. A key without a value counts as not
 * written.
 */
function collect(
  mapping: Record<string, unknown>,
  section: string,
  file: string,
  source: ConfigSource,
): void {
  for (const [key, value] of Object.entries(mapping)) {
    const path = section + key;
    const setting = settingList.find((entry) => entry.path === path);
    const below = settingList.filter((entry) => entry.path.startsWith(`${path}.`)).map((entry) => entry.path);
    if (setting !== undefined) {
      if (source.given.has(setting.path)) source.problems.push(`${path} stands twice in ${file}`);
      else if (value !== null) source.given.set(setting.path, { value, origin: file });
    } else if (below.length === 0)
      source.problems.push(
        `unknown setting ${path} in ${file}${didYouMean(path, names(), '; "berth config" shows all there are')}`,
      );
    else if (isMapping(value)) collect(value, `${path}.`, file, source);
    else if (value !== null)
      source.problems.push(
        `${path} in ${file} is a section; allowed: ` +
          `${below.map((name: SettingPath) => name.slice(path.length + 1)).join(', ')} below it`,
      );
  }
}

function names(): Set<string> {
  return new Set(
    settingList.flatMap(({ path }) =>
      path.includes('.') ? [path, path.slice(0, path.lastIndexOf('.'))] : [path],
    ),
  );
}
