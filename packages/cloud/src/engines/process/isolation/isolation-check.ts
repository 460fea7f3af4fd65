import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEFAULT_USER_RANGE, parseUserRange } from '../../../support/user-range.ts';
import type { EngineCheck } from '../../engine-check.ts';
import { firewallProblem } from '../../iptables.ts';
import { type Isolation, probeIsolation } from './isolation.ts';

const CHECK = 'process isolation';

const FOUND: Readonly<Record<Exclude<Isolation['mode'], 'containers'>, string>> = {
  namespaces: 'other accounts than root run as users of their own, in namespaces',
  users: 'other accounts than root run as users of their own, without namespaces',
  refused: 'other accounts than root can run nothing on the process engine',
  none: 'process.isolation is none: every account can read and change everything of every other one and of Berth',
};

/** Tries what this machine lets this user do. Berth also runs where accounts cannot be kept apart. */
export const checkIsolation: EngineCheck = async (env) => {
  const given = env['BERTH_PROCESS_ISOLATION'];
  const setting = given === 'none' || given === 'users' ? given : 'auto';
  const range = parseUserRange(env['BERTH_PROCESS_USERS'] ?? '') ?? DEFAULT_USER_RANGE;
  const folder = await mkdtemp(join(tmpdir(), 'berth-doctor-'));
  try {
    const { mode, reason } = await probeIsolation(setting, range, folder);
    const found = mode === 'containers' ? mode : FOUND[mode];
    const shown = mode === 'users' || mode === 'refused' ? `${found} (${reason})` : found;
    const open = mode === 'users' || mode === 'namespaces' ? await firewallProblem() : undefined;
    return {
      check: CHECK,
      ok: true,
      found:
        open === undefined
          ? shown
          : `${shown}; they reach each other's ports: the firewall is not managed, because ${open} (docs/isolation.md)`,
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};
