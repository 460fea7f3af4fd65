import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { repositoryPath } from './repository-path.ts';

export interface Tools {
  wrk: boolean;
  redis: boolean;
}

export function findTools(): Tools {
  return {
    wrk: answers('wrk', ['-v'], [0, 1]),
    redis: answers('redis-server', ['-v'], [0]),
  };
}

function answers(command: string, args: string[], codes: number[]): boolean {
  const { error, status } = spawnSync(command, args, { stdio: 'ignore' });
  return error === undefined && status !== null && codes.includes(status);
}

export function packageVersion(name: string): string {
  return (
    JSON.parse(readFileSync(repositoryPath(`node_modules/${name}/package.json`), 'utf8')) as {
      version: string;
    }
  ).version;
}

export function redisVersion(): string {
  return /v=(\S+)/.exec(spawnSync('redis-server', ['-v']).stdout.toString())?.[1] ?? '';
}

export function wrkVersion(): string {
  return /^wrk (\S+)/.exec(spawnSync('wrk', ['-v']).stdout.toString())?.[1] ?? '';
}
