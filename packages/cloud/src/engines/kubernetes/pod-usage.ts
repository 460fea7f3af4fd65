/** Reads the container's own cgroup, in version 2 or 1. */
const COMMAND = `cd /sys/fs/cgroup 2>/dev/null || exit 1
if [ -e cpu.stat ] && [ -e memory.current ]; then
  cat cpu.stat memory.current
  grep '^inactive_file ' memory.stat
else
  echo "usage_nsec $(cat cpuacct/cpuacct.usage)"
  cat memory/memory.usage_in_bytes
  grep '^total_inactive_file ' memory/memory.stat
fi`;

export const USAGE_COMMAND: readonly string[] = ['sh', '-c', COMMAND];

/** Inactive page cache does not count: the kernel frees it on demand. */
export function parseUsage(text: string): { cpuSeconds: number; memoryInBytes: number } | undefined {
  const number = (pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? Number.NaN);
  const micros = number(/^usage_usec (\d+)$/m);
  const cpuSeconds = Number.isNaN(micros) ? number(/^usage_nsec (\d+)$/m) / 1e9 : micros / 1e6;
  const used = number(/^(\d+)$/m);
  if (Number.isNaN(cpuSeconds) || Number.isNaN(used)) return undefined;
  const inactive = number(/^(?:total_)?inactive_file (\d+)$/m);
  return { cpuSeconds, memoryInBytes: inactive < used ? used - inactive : used };
}
