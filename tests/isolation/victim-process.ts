import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';

export const SECRET = 'victim-secret-5f1c9a';
export const SYSTEM_V_KEY = 0x6265_7274;
/** Everything that other accounts must not reach: files, a volume, shared memory, queues, keys, sockets. */
export const VICTIM = `
set -e
for file in secret.txt /workspace/secret.txt /tmp/victim-secret /dev/shm/victim-secret; do echo "$SECRET" > $file; done
exec python3 -u - <<'END'
import ctypes, os, platform, selectors, socket
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
secret = os.environ['SECRET'].encode()
at = libc.shmat(libc.shmget(${SYSTEM_V_KEY}, 4096, 0o1666), None, 0)
ctypes.memmove(at, secret, len(secret))
libc.semget(${SYSTEM_V_KEY}, 1, 0o1666)
message = ctypes.create_string_buffer(b'\\x01' + b'\\0' * 7 + secret)
libc.msgsnd(libc.msgget(${SYSTEM_V_KEY}, 0o1666), message, len(secret), 0)
os.close(os.open('/dev/mqueue/victim', os.O_CREAT | os.O_RDWR, 0o666))
add_key = 248 if platform.machine() == 'x86_64' else 217
for ring in (-3, -4): libc.syscall(add_key, b'user', b'victim', secret, len(secret), ring)
unix = socket.socket(socket.AF_UNIX)
unix.bind('/tmp/victim.sock'); os.chmod('/tmp/victim.sock', 0o777)
tcp = socket.create_server(('::', int(os.environ['PORT'])), family=socket.AF_INET6, dualstack_ipv6=True)
waiting = selectors.DefaultSelector()
for server in (unix, tcp): server.listen(); waiting.register(server, selectors.EVENT_READ)
print('ready')
while True:
  for key, _ in waiting.select(): key.fileobj.accept()[0].send(secret)
END`;

/** A process of this user that is not a shell. */
export function processOf(uid: number): number {
  const found = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .find((pid) => {
      const status = statusOf(pid);
      return new RegExp(`^Uid:\\s+${uid}\\b`, 'm').test(status) && /^Name:\s+python3/m.test(status);
    });
  assert.ok(found, `no process of user ${uid}`);
  return Number(found);
}

/** Empty where the process has ended meanwhile. */
function statusOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return '';
  }
}
