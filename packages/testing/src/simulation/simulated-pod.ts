import type { SeededRandom } from '../safety/seeded-random.ts';
import type { InstanceProgram } from './simulated-engine.ts';
import type { SimulatedProcess, VirtualTime } from './virtual-time.ts';

/** The share of pods that end by themselves. */
const EXIT_SHARE = 0.25;

/** What a pod runs: it does nothing, and may end by itself. */
export function startSimulatedPod(
  time: VirtualTime,
  random: SeededRandom,
  exit: (exitCode: number) => void,
): InstanceProgram {
  const process: SimulatedProcess = { frozenUntil: 0, hasCrashed: false };
  if (random.chance(EXIT_SHARE))
    time.after(random.next() * 30_000, process, () => exit(random.chance(0.5) ? 0 : 1));
  return {
    stop: (graceMs) => void time.after(random.next() * Math.min(graceMs, 2_000), process, () => exit(0)),
    kill: () => {
      process.hasCrashed = true;
    },
  };
}
