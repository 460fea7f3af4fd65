import { isDeepStrictEqual } from 'node:util';
import { formatArgs, parseArgs } from '../../domain/templates/container-command.ts';
import type { Template } from '../../domain/records.ts';
import { ruleError } from '../../support/errors.ts';
import { integer, list, map, nullable, object, text } from '../rest/json-schema.ts';
import { V2_CONTAINER_DISK_GB, V2_PERSISTENT_DISK_GB } from '../../domain/limits.ts';

/** What a container is made of; templates, pods and endpoints share it. */
export const containerFields = {
  args: text({
    description:
      'The command: shell text, split as a shell would, or the JSON text {"entrypoint": [], "cmd": ' +
      '[]}. Empty: the image decides',
  }),
  cmd: list(text(), { description: 'The command as a list; the same thing as `args` in exact words' }),
  entrypoint: list(text(), { description: "Replaces the image's entrypoint" }),
  disk: integer({
    ...V2_CONTAINER_DISK_GB,
    description: 'Container disk in GB; emptied at every restart',
  }),
  env: map(text(), {
    description: 'Environment variables. A value may refer to a secret as {{ RUNPOD_SECRET_name }}',
  }),
  ports: list(text(), { description: 'Exposed ports such as 8888/http or 22/tcp' }),
  registry: nullable(text({ description: 'Id of saved registry credentials, for a private image' })),
};

/** The same as answers show it. */
export const containerResponseFields = {
  image: text(),
  args: text(),
  cmd: list(text()),
  entrypoint: list(text()),
  disk: integer(),
  env: map(text()),
  ports: list(text()),
  registry: nullable(text()),
};

export function serializeContainer({
  image,
  args,
  containerDisk,
  env,
  ports,
  registryId,
}: Pick<Template, 'image' | 'args' | 'containerDisk' | 'env' | 'ports' | 'registryId'>) {
  const { entrypoint, cmd } = parseArgs(args);
  return { image, args, cmd, entrypoint, disk: containerDisk, env, ports, registry: registryId };
}

export const persistentMount = object({
  size: integer({ ...V2_PERSISTENT_DISK_GB, description: 'Size in GB' }),
  path: text({ minLength: 1, description: 'Where it is mounted' }),
});

interface CommandFields {
  args?: string;
  cmd?: string[];
  entrypoint?: string[];
}

/** The command that a body asks for: nothing said leaves it as it is; said twice, it must agree. */
export function mergeCommand(body: CommandFields, current: string): string {
  if (body.cmd === undefined && body.entrypoint === undefined) return body.args ?? current;
  const before = body.args === undefined ? parseArgs(current) : { entrypoint: [], cmd: [] };
  const wanted = { entrypoint: body.entrypoint ?? before.entrypoint, cmd: body.cmd ?? before.cmd };
  if (body.args === undefined) return formatArgs(wanted);
  const given = parseArgs(body.args);
  const agrees =
    (body.cmd === undefined || isDeepStrictEqual(given.cmd, wanted.cmd)) &&
    (body.entrypoint === undefined || isDeepStrictEqual(given.entrypoint, wanted.entrypoint));
  if (!agrees) throw ruleError('args and cmd/entrypoint say different things; send one of them');
  return body.args;
}
