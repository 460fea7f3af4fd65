import type { Command } from './command.ts';

/** Every command, loaded when it is needed: `berth up` waits for no code of the others. */
export const commands: Readonly<Record<string, () => Promise<Command>>> = {
  up: async () => (await import('./commands/up.ts')).up,
  deploy: async () => (await import('./commands/deploy.ts')).deploy,
  run: async () => (await import('./commands/run.ts')).run,
  logs: async () => (await import('./commands/logs.ts')).logs,
  ps: async () => (await import('./commands/ps.ts')).ps,
  rm: async () => (await import('./commands/rm.ts')).rm,
  dev: async () => (await import('./commands/dev.ts')).dev,
  'account create': async () => (await import('./commands/account-create.ts')).accountCreate,
  'account list': async () => (await import('./commands/account-list.ts')).accountList,
  'key create': async () => (await import('./commands/key-create.ts')).keyCreate,
  'key list': async () => (await import('./commands/key-list.ts')).keyList,
  'key revoke': async () => (await import('./commands/key-revoke.ts')).keyRevoke,
  audit: async () => (await import('./commands/audit.ts')).audit,
  config: async () => (await import('./commands/config.ts')).config,
  doctor: async () => (await import('./commands/doctor.ts')).doctor,
};
