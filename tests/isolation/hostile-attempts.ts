/**
 * What a hostile tenant tries on the process engine, knowing this source and every path, id and number of the
 * machine. All commands run in one pod of an account, against another account's pod and against Berth.
 * Known to them: DATA (Berth's data folder), BERTH_PID, VICTIM_POD, VICTIM_ROOT, VICTIM_VOLUME, VICTIM_PID,
 * VICTIM_UID, VICTIM_KEY (of System V objects), VICTIM_PORT, VICTIM_ENDPOINT, VICTIM_JOB, API, API_PORT.
 */
export interface Attempt {
  name: string;
  /** A shell command. It must fail, and its output must not hold any secret. */
  command: string;
  /** It may end well, since it can show only the tenant's own things; secrets must still not appear. */
  mayEnd?: true;
  /** Berth may have no such address at all. Elsewhere that would prove nothing. */
  mayBeAbsent?: true;
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
import os, sys, urllib.error, urllib.request
url = os.environ['API'] + f"${path}"
request = urllib.request.Request(url, method='${method}', data=${body}, headers={
  'authorization': 'Bearer ' + os.environ['RUNPOD_API_KEY'], 'content-type': 'application/json'})
try: print(urllib.request.urlopen(request).read())
except urllib.error.HTTPError as error: sys.exit(f'{error.code} {error.read()}')
`);

/** A system call by its number on this architecture; it ends with the error, or with 0. */
const SYSTEM_CALL = (numbers: { x64: number; arm64: number }, ...args: string[]): string =>
  python(`
import ctypes, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
number = ${numbers.x64} if platform.machine() == 'x86_64' else ${numbers.arm64}
sys.exit(ctypes.get_errno() if libc.syscall(${['number', ...args].join(', ')}) < 0 else 0)
`);

const CONNECT = (host: string, port: string): string =>
  python(`
import os, socket
s = socket.create_connection((${host}, ${port}), 2)
print(s.recv(100))
`);

const KEYCTL = `
import ctypes, os, platform, re, sys
libc = ctypes.CDLL(None, use_errno=True)
number = 250 if platform.machine() == 'x86_64' else 219
def keyctl(*args): return libc.syscall(number, *args)
def read(key):
  buffer = ctypes.create_string_buffer(1000)
  size = keyctl(11, key, buffer, 1000)
  if size > 0: print(buffer.raw[:size])
`;

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
id = libc.shmget(int(os.environ['VICTIM_KEY']), 4096, 0)
if id < 0: sys.exit(1)
print(ctypes.string_at(libc.shmat(id, None, 0o10000)))
`),
  },
  {
    name: "open the other account's System V semaphores",
    command: python(`
import ctypes, os, sys
sys.exit(0 if ctypes.CDLL(None).semget(int(os.environ['VICTIM_KEY']), 1, 0) >= 0 else 1)
`),
  },
  {
    name: "read the other account's System V messages",
    command: python(`
import ctypes, os, sys
libc = ctypes.CDLL(None)
id = libc.msgget(int(os.environ['VICTIM_KEY']), 0)
if id < 0: sys.exit(1)
buffer = ctypes.create_string_buffer(1000)
libc.msgrcv(id, buffer, 900, 0, 0o4000)
print(buffer.raw)
`),
  },
  { name: "find the other account's message queue", command: 'ls /dev/mqueue/ | grep victim' },
  {
    name: 'read every key that the kernel holds',
    command: python(`${KEYCTL}
for line in open('/proc/keys'): read(int(line.split()[0], 16))
for special in (-3, -4, -5): read(special)
`),
    mayEnd: true,
  },
  {
    name: "find the other account's key in its own keyrings",
    command: python(`${KEYCTL}
found = max(keyctl(10, ring, b'user', b'victim', 0) for ring in (-3, -4, -5))
if found < 0: sys.exit(1)
read(found)
`),
  },
  {
    name: "open the other account's files by handle",
    // The handle of a file of a file system is enough for whoever may open by handle.
    command: SYSTEM_CALL(
      { x64: 304, arm64: 265 },
      "os.open('/', os.O_RDONLY)",
      "ctypes.create_string_buffer(b'\\x08\\0\\0\\0\\x01\\0\\0\\0\\x02' + b'\\0' * 7)",
      '0',
    ),
  },
  {
    name: "read the other account's cgroup",
    command: 'find /sys/fs/cgroup -name "*$VICTIM_POD*" | grep .',
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
  {
    name: "read Berth's memory",
    command: SYSTEM_CALL(
      { x64: 310, arm64: 270 },
      "int(os.environ['BERTH_PID'])",
      "(ctypes.c_void_p * 2)(id(b'') , 8)",
      '1',
      '(ctypes.c_void_p * 2)(0x400000, 8)',
      '1',
      '0',
    ),
  },
  {
    name: 'hold the process of Berth by a descriptor',
    command: SYSTEM_CALL({ x64: 434, arm64: 434 }, "int(os.environ['BERTH_PID'])", '0'),
  },
  {
    name: 'watch what other processes do',
    command: SYSTEM_CALL(
      { x64: 298, arm64: 241 },
      'b"\\x01\\0\\0\\0\\x70\\0\\0\\0" + b"\\0" * 104',
      '-1',
      '0',
      '-1',
      '0',
    ),
  },
  {
    name: 'load a program into the kernel',
    command: SYSTEM_CALL({ x64: 321, arm64: 280 }, '5', 'b"\\x01\\0\\0\\0" + b"\\0" * 116', '120'),
  },
  {
    name: 'load a module into the kernel',
    command: SYSTEM_CALL({ x64: 175, arm64: 105 }, 'b"x"', '1', 'b""'),
  },
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
  {
    name: 'give a program of its own to root',
    command: 'cp /bin/sh mine && chown 0 mine',
  },
  {
    name: 'keep the rights of root in a program of its own',
    command: 'cp /usr/bin/setpriv mine && chmod u+s mine && ./mine --reuid=0 id || exit 1',
  },
  // The network.
  {
    name: "connect to the other account's port",
    command: CONNECT("'127.0.0.1'", "os.environ['VICTIM_PORT']"),
  },
  {
    name: "connect to the other account's port over IPv6",
    command: CONNECT("'::1'", "os.environ['VICTIM_PORT']"),
  },
  {
    name: "listen at Berth's own port beside it",
    command: python(`
import os, socket
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
s.bind(('127.0.0.1', int(os.environ['API_PORT']))); s.listen()
`),
  },
  {
    name: "listen at the other account's port beside it",
    command: python(`
import os, socket
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
s.bind(('127.0.0.1', int(os.environ['VICTIM_PORT']))); s.listen()
`),
  },
  {
    name: 'listen to the traffic of the machine',
    command: python('import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x0300)'),
  },
  {
    name: 'listen to the traffic of the machine as root in a user namespace',
    command: `unshare -Ur ${python('import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x0300)')}`,
  },
  {
    name: 'forge packets',
    command: python('import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)'),
  },
  {
    name: 'change the firewall of the machine',
    command: '[ -x /usr/sbin/iptables ] && /usr/sbin/iptables -F OUTPUT',
  },
  // Berth's own interfaces, with what the pod was given.
  {
    name: "read the other account's pod with its own token",
    command: CALL_API('GET', "/v2/pods/{os.environ['VICTIM_POD']}"),
  },
  {
    name: 'make an account with its own token',
    command: CALL_API('POST', '/v2/accounts', `b'{"name":"mine"}'`),
  },
  { name: 'list the keys with its own token', command: CALL_API('GET', '/v2/account/api-keys') },
  {
    name: "stop the other account's pod with its own token",
    command: CALL_API('POST', "/v2/pods/{os.environ['VICTIM_POD']}/action", `b'{"action":"stop"}'`),
  },
  {
    name: "stop the other account's pod over GraphQL",
    // Refused in the body, with 200. The test checks that the pod still runs.
    command: CALL_API(
      'POST',
      '/graphql',
      `__import__('json').dumps({'query': 'mutation { podStop(input: { podId: "' + ` +
        `os.environ['VICTIM_POD'] + '" }) { id } }'}).encode()`,
    ),
    mayEnd: true,
  },
  {
    name: "read the other account's files with its own token",
    command: CALL_API('GET', "/v2/pods/{os.environ['VICTIM_POD']}/files?path=/secret.txt"),
  },
  {
    name: "read the other account's log with its own token",
    command: CALL_API('GET', "/v2/pods/{os.environ['VICTIM_POD']}/logs"),
  },
  {
    name: 'make a key with its own token',
    command: CALL_API('POST', '/v2/account/api-keys', `b'{"name":"mine","access":"all"}'`),
  },
  {
    name: 'use the interface between servers',
    command: CALL_API('GET', "/internal/engines/process/stop?args=%5B%22{os.environ['VICTIM_POD']}%22,1%5D"),
    mayBeAbsent: true,
  },
  { name: 'read the metrics of all accounts with its own token', command: CALL_API('GET', '/metrics') },
  {
    name: 'read the metrics of all accounts without a key',
    command:
      "python3 -c \"import os, urllib.request as u; print(u.urlopen(os.environ['API'] + '/metrics').read())\"",
  },
  { name: 'list the buckets with its own token', command: CALL_API('GET', '/s3/') },
  {
    name: "take the other account's jobs with its own token",
    command: CALL_API('GET', "/v2/{os.environ['VICTIM_ENDPOINT']}/job-take/mine?gpu=none&job_in_progress=0"),
  },
  {
    name: "read the other account's job with its own token",
    command: CALL_API('GET', "/v2/{os.environ['VICTIM_ENDPOINT']}/status/{os.environ['VICTIM_JOB']}"),
  },
  {
    name: "end the other account's job with its own token",
    command: CALL_API(
      'POST',
      "/v2/{os.environ['VICTIM_ENDPOINT']}/job-done/mine/{os.environ['VICTIM_JOB']}?gpu=none",
      `b'{"output":"mine"}'`,
    ),
  },
  {
    name: "cancel the other account's job with its own token",
    command: CALL_API('POST', "/v2/{os.environ['VICTIM_ENDPOINT']}/cancel/{os.environ['VICTIM_JOB']}", "b''"),
  },
  {
    name: "empty the other account's queue with its own token",
    command: CALL_API('POST', "/v2/{os.environ['VICTIM_ENDPOINT']}/purge-queue", "b''"),
  },
  {
    name: "delete the other account's pod with its own token",
    command: CALL_API('DELETE', "/v2/pods/{os.environ['VICTIM_POD']}"),
  },
  {
    name: "read the other account's files behind an encoded path",
    command: CALL_API(
      'GET',
      "/v2/pods/{os.environ['RUNPOD_POD_ID']}/files?path=..%2F..%2F{os.environ['VICTIM_POD']}%2Froot%2Fsecret.txt",
    ),
  },
  {
    name: "read Berth's keys behind an encoded path",
    command: CALL_API('GET', "/v2/pods/{os.environ['RUNPOD_POD_ID']}/files?path=%2F..%2F..%2F..%2Froot.key"),
  },
  {
    name: 'start processes without end',
    command: 'python3 -c "import resource as r; exit(0 < r.getrlimit(r.RLIMIT_NPROC)[1] <= 16384)"',
  },
  {
    name: 'fill the memory of the machine through /dev/shm',
    command: `python3 -c "import os; s = os.statvfs('/dev/shm'); exit(s.f_blocks * s.f_frsize <= 4 << 30)"`,
  },
  { name: 'find an abstract socket of Berth', command: 'grep -i "@.*berth" /proc/net/unix' },
];

/** Runs each attempt, with its exit code. */
export const HOSTILE = `
echo "mine is $OWN_SECRET"
${ATTEMPTS.map(({ command }, index) => `echo "@@ begin ${index}"; timeout 10 sh -c ${quote(command)} </dev/null 2>&1; code=$?; echo; echo "@@ end ${index} $code"`).join('\n')}
echo "@@ done"
exec sleep 1000`;

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
