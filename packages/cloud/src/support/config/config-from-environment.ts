import { settingList } from './settings.ts';
import { closestMatch } from './did-you-mean.ts';
import type { ConfigSource } from './config-source.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

const PREFIX = 'BERTH_';

/** The variable for the configuration file itself. */
export const FILE_VARIABLE = 'BERTH_CONFIG';

/**
 * Variables of the command line, of tests, of processes inside a pod, and of Kubernetes beside a service that
 * is called berth.
 */
const FOREIGN_VARIABLES =
  /^BERTH_(URL|API_KEY|OUTPUT|CONTEXT|TEST_.*|CI_RUN|REQUIRE_.*|ROOT|PORT_\d.*|SERVICE_(HOST|PORT.*))$/;

/** Kubernetes sets this same variable in pods beside a service called berth, to the service's address. */
const SERVICE_LINK = /^(tcp|udp|sctp):\/\//;

/** An empty variable counts as not set: that is how compose files and shells leave one out. */
export function configFromEnvironment(
  env: Environment,
): ConfigSource & { file: string | undefined; warnings: string[] } {
  const source = {
    given: new Map(),
    problems: [],
    warnings: [] as string[],
    file: env[FILE_VARIABLE] === '' ? undefined : env[FILE_VARIABLE],
  };
  const known = new Set([FILE_VARIABLE]);
  for (const { path, variable } of settingList) {
    if (variable === undefined) continue;
    known.add(variable);
    const value = env[variable];
    if (value === undefined || value === '') continue;
    if (path === 'port' && SERVICE_LINK.test(value))
      source.warnings.push(
        `${variable} is ${JSON.stringify(value)}, which Kubernetes set for a service of this name; it is ignored`,
      );
    else source.given.set(path, { value, origin: variable });
  }
  for (const name of Object.keys(env)
    .filter(
      (variable) => variable.startsWith(PREFIX) && !known.has(variable) && !FOREIGN_VARIABLES.test(variable),
    )
    .sort()) {
    const close = closestMatch(
      name.slice(PREFIX.length),
      [...known].map((variable) => variable.slice(PREFIX.length)),
    );
    source.warnings.push(
      `${name} is not a variable of Berth and is ` +
        `ignored${close === undefined ? '' : `; did you mean ${PREFIX}${close}?`}`,
    );
  }
  return source;
}
