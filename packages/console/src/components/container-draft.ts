import type { ContainerSettings } from '../api/resources.ts';
import { formatEnv, parseEnv, parsePorts } from './env-text.ts';

/** What a container is made of, as it is typed. Pods, templates and clusters share these fields. */
export interface ContainerDraft {
  image: string;
  args: string;
  disk: string;
  env: string;
  ports: string;
  registry: string;
}

export const EMPTY_CONTAINER: ContainerDraft = {
  image: '',
  args: '',
  disk: '10',
  env: '',
  ports: '',
  registry: '',
};

export function containerDraft(container: ContainerSettings): ContainerDraft {
  return {
    image: container.image,
    args: container.args,
    disk: String(container.disk),
    env: formatEnv(container.env),
    ports: container.ports.join(', '),
    registry: container.registry ?? '',
  };
}

/** The fields of a request. */
export function containerBody(draft: ContainerDraft): Record<string, unknown> {
  const disk = Number(draft.disk);
  return {
    ...(draft.image.trim() !== '' && { image: draft.image.trim() }),
    args: draft.args,
    ...(draft.disk !== '' && Number.isFinite(disk) && { disk }),
    env: parseEnv(draft.env).env,
    ports: parsePorts(draft.ports).ports,
    registry: draft.registry === '' ? null : draft.registry,
  };
}

export function containerProblems(draft: ContainerDraft): string[] {
  return [...parseEnv(draft.env).problems, parsePorts(draft.ports).problem ?? []].flat();
}
