/**
 * What a hostile tenant tries on the process engine, knowing this source and every path, id and number of the
 * machine. All commands run in one pod of an account, against another account's pod and against Berth.
 * Known to them: DATA (Berth's data folder), BERTH_PID, VICTIM_POD, VICTIM_ROOT, VICTIM_VOLUME, VICTIM_PID,
 * VICTIM_UID, VICTIM_SHM_KEY, API.
 */
export interface Attempt {
  name: string;
  /** A shell command. It must fail, and its output must not hold any secret. */
  command: string;
  /** It may end well, since it can show only the tenant's own things; secrets must still not appear. */
  mayEnd?: true;
}

const python = (lines: string): string => `python3 - <<'END'\n${lines.trim()}\nEND`;

const PTRACE = (pid: string): string =>
  python(`
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
sys.exit(0 if libc.ptrace(16, ${pid}, None, None) == 0 else ctypes.get_errno())
`);

const CALL_API = (method: string, path: string, body = 'None'): string =>
  python(`
import os, urllib.request
url = os.environ['API'] + f"${path}"
request = urllib.request.Request(url, method='${method}', data=${body}, headers={
  'authorization': 'Bearer ' + os.environ['RUNPOD_API_KEY'], 'content-type': 'application/json'})
print(urllib.request.urlopen(request).read())
`);

export const ATTEMPTS: readonly Attempt[] = [
  // Files of Berth.
  { name: 'read the root key', command: 'cat "$DATA/root.key"' },
  { name: 'read the master key', command: 'cat "$DATA/master.key"' },
  { name: 'read the database', command: 'cat "$DATA"/*.sqlite* "$DATA"/*.db*' },
  { name: 'read the address file of the server', command: 'cat "$DATA/server.json"' },
  { name: 'link to the root key under a second name', command: 'ln "$DATA/root.key" stolen && cat stolen' },
  {
    name: 'replace the root key',
    command:
      'echo rpa_0123456789abcdef > "$DATA/root.key"; [ -s "$DATA/root.key" ] && cat /proc/1/root"$DATA/root.key"',
  },
  { name: 'read which users accounts have', command: 'cat "$DATA"/users/*' },
  { name: 'read its own saved state', command: 'cat "$BERTH_ROOT/../instance.json"' },
  {
    name: 'swap its output for a link to the root key',
    command: 'ln -sf "$DATA/root.key" "$BERTH_ROOT/../output"',
  },
  { name: 'forge its exit code', command: 'echo 0 > "$BERTH_ROOT/../exit"' },
  { name: 'forge its process ids', command: 'echo "1 (x) S 1" > "$BERTH_ROOT/../started"' },
  { name: 'read its output file as another file', command: 'cat "$BERTH_ROOT/../output"' },
  // Files of the other account.
  { name: "find the other account's instance", command: '[ -e "$DATA/instances/$VICTIM_POD" ]' },
  { name: "read the other account's working folder", command: 'cat "$VICTIM_ROOT/secret.txt"' },
  { name: "write into the other account's working folder", command: 'echo x > "$VICTIM_ROOT/planted"' },
  { name: "read the other account's volume", command: 'cat "$VICTIM_VOLUME/secret.txt"' },
  { name: "write into the other account's volume", command: 'echo x > "$VICTIM_VOLUME/planted"' },
  { name: "read the other account's log", command: 'cat "$DATA/logs/$VICTIM_POD"/*' },
  { name: "read the other account's images", command: 'ls "$DATA/images/" | grep .' },
  { name: "read the other account's files in /tmp", command: 'cat /tmp/victim-secret' },
  { name: "read the other account's files in /var/tmp", command: 'cat /var/tmp/victim-secret' },
  { name: "read the other account's shared memory in /dev/shm", command: 'cat /dev/shm/victim-secret' },
  {
    name: "attach the other account's System V shared memory",
    command: python(`
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
id = libc.shmget(int(os.environ['VICTIM_SHM_KEY']), 4096, 0)
if id < 0: sys.exit(1)
print(ctypes.string_at(libc.shmat(id, None, 0o10000)))
`),
  },
  {
    name: "connect to the other account's unix socket",
    command: python(`
import socket
s = socket.socket(socket.AF_UNIX); s.connect('/tmp/victim.sock'); print(s.recv(100))
`),
  },
  {
    name: 'connect to the Docker socket',
    command: python("import socket; socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')"),
  },
  // Processes.
  { name: "read Berth's environment", command: 'cat "/proc/$BERTH_PID/environ"' },
  { name: 'read every environment there is', command: 'cat /proc/[0-9]*/environ', mayEnd: true },
  { name: 'read every command line there is', command: 'cat /proc/[0-9]*/cmdline', mayEnd: true },
  { name: "see the other account's process", command: '[ -e "/proc/$VICTIM_PID" ]' },
  { name: "see Berth's process", command: '[ -e "/proc/$BERTH_PID" ]' },
  { name: 'reach the files of the first process', command: 'cat "/proc/1/root$DATA/root.key"' },
  { name: 'list the descriptors of the first process', command: 'ls /proc/1/fd/' },
  { name: 'read the environment of the first process', command: 'cat /proc/1/environ' },
  { name: 'kill Berth', command: 'kill -9 "$BERTH_PID"' },
  { name: "kill the other account's process", command: 'kill -9 "$VICTIM_PID"' },
  { name: "kill the other account's process group", command: 'kill -9 "-$VICTIM_PID"' },
  { name: 'kill the first process', command: 'kill -9 1' },
  { name: 'trace Berth', command: PTRACE("int(os.environ['BERTH_PID'])") },
  { name: "trace the other account's process", command: PTRACE("int(os.environ['VICTIM_PID'])") },
  { name: 'trace the first process', command: PTRACE('1') },
  { name: 'slow Berth down', command: 'renice -n 19 -p "$BERTH_PID"' },
  // Rights.
  { name: 'become root', command: 'python3 -c "import os; os.setuid(0)"' },
  {
    name: "become the other account's user",
    command: 'python3 -c "import os; os.setuid(int(os.environ[\'VICTIM_UID\']))"',
  },
  { name: 'join a group', command: 'python3 -c "import os; os.setgroups([0])"' },
  { name: 'use a program that runs as root', command: 'su root -c id' },
  { name: 'mount something', command: 'mount -t tmpfs none /mnt || mount -t tmpfs none /tmp' },
  { name: 'unmount what hides the machine', command: 'umount -l / || umount -l /proc' },
  { name: 'change the root', command: 'python3 -c "import os; os.chroot(\'/usr\')"' },
  { name: 'enter the namespaces of the first process', command: 'nsenter -t 1 -m -p cat "$DATA/root.key"' },
  {
    name: 'be root in a user namespace and read the keys',
    command:
      'unshare -Urm sh -c \'umount -l /tmp; umount -l /; cat "$DATA/root.key" "$DATA/master.key" /proc/1/environ\'',
  },
  { name: 'make a device', command: 'mknod disk b 8 0' },
  { name: 'read the memory of the machine', command: 'cat /dev/mem /proc/kcore /dev/kmem' },
  { name: 'read a disk', command: 'cat /dev/sda /dev/vda /dev/nvme0n1' },
  { name: 'change a setting of the kernel', command: 'echo "|/bin/sh" > /proc/sys/kernel/core_pattern' },
  {
    name: 'leave its cgroup',
    command: 'echo 0 > /sys/fs/cgroup/cgroup.procs || echo 0 > /sys/fs/cgroup/unified/cgroup.procs',
  },
  {
    name: 'change a program of the machine',
    command: 'echo x >> /usr/bin/env || echo x > /usr/bin/planted || echo x > /etc/planted',
  },
  { name: "change Berth's program", command: 'echo x >> "$BERTH_PROGRAM"' },
  // Berth's own interfaces, with what the pod was given.
  {
    name: "read the other account's pod with its own token",
    command: CALL_API('GET', "/v2/pods/{os.environ['VICTIM_POD']}"),
  },
  {
    name: 'make an account with its own token',
    command: CALL_API('POST', '/v2/accounts', `b'{"name":"mine"}'`),
  },
  { name: 'list the keys with its own token', command: CALL_API('GET', '/v2/api-keys') },
  { name: 'find an abstract socket of Berth', command: 'grep -i "@.*berth" /proc/net/unix' },
];
