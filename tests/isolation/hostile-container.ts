/**
 * What runs in the hostile container. Each attempt is a line of the table; it prints `name: reached` where it
 * got what it must not get, and `name: refused` where it did not.
 */
export const HOSTILE = String.raw`
const { connect } = require('node:net');
const { spawn, spawnSync } = require('node:child_process');
const fs = require('node:fs');
const dns = require('node:dns/promises');
const target = JSON.parse(process.env.TARGETS);
const gateway = () => {
  const line = fs.readFileSync('/proc/net/route', 'utf8').split('\n').find((row) => row.split('\t')[1] === '00000000');
  return Buffer.from(line.split('\t')[2], 'hex').reverse().join('.');
};
const reach = (host, port) => new Promise((resolve, reject) => {
  const socket = connect({ host, port: Number(port), timeout: 1500 });
  socket.on('connect', () => { socket.destroy(); resolve(); });
  socket.on('timeout', () => { socket.destroy(); reject(new Error('timeout')); });
  socket.on('error', reject);
});
const connectPath = (path) => new Promise((resolve, reject) => {
  const socket = connect(path, () => { socket.destroy(); resolve(); });
  socket.on('error', reject);
});
const token = 'Bearer ' + process.env.RUNPOD_API_KEY;
const ask = async (method, path, body, headers = {}) => {
  const response = await fetch(process.env.WORKER_URL + path, {
    method,
    headers: { authorization: token, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(String(response.status));
  return response.text();
};
const raw = (line) => new Promise((resolve, reject) => {
  const { hostname, port } = new URL(process.env.WORKER_URL);
  const headers = ['Host: x', 'Authorization: ' + token, 'Connection: close'];
  const socket = connect(Number(port), hostname, () => socket.write([line, ...headers, '', ''].join('\r\n')));
  socket.on('error', reject);
  socket.once('data', (bytes) => (/^HTTP\/1.1 2/.test(String(bytes)) ? resolve() : reject(new Error(String(bytes)))));
  socket.once('close', () => reject(new Error('closed')));
});
const run = (program, ...args) => {
  const { status, error } = spawnSync(program, args, { timeout: 5000, stdio: 'ignore' });
  if (error !== undefined || status !== 0) throw error ?? new Error('exit ' + status);
};
const status = (name) =>
  new RegExp('^' + name + ':\\s+(\\S+)', 'm').exec(fs.readFileSync('/proc/self/status', 'utf8'))[1];
const refuseUnless = (possible, why) => { if (!possible) throw new Error(why); };
const capability = (bit) => refuseUnless((BigInt('0x' + status('CapBnd')) >> BigInt(bit)) & 1n, 'no');
const absent = (...paths) => { for (const path of paths) if (fs.existsSync(path)) return; throw new Error('absent'); };
const attempts = {
  'the victim at its address': () => reach(target.victim.address, target.victim.port),
  'the victim by its name': async () =>
    reach((await dns.lookup('berth-' + target.victim.id)).address, target.victim.port),
  'the published port of the victim, at the default bridge': () =>
    reach('host.docker.internal', target.victim.published),
  'the published port of the victim, at my gateway': () => reach(gateway(), target.victim.published),
  'the published port of the victim, on my loopback': () => reach('127.0.0.1', target.victim.published),
  'the gateway of the victim': () => reach(target.victim.gateway, target.database),
  'a database on the machine, at the default bridge': () => reach('host.docker.internal', target.database),
  'a database on the machine, at my gateway': () => reach(gateway(), target.database),
  'a database on the machine, at its own address': () => reach(target.machine, target.database),
  'a database on the loopback of the machine, through my gateway': () => reach(gateway(), target.loopback),
  'a database on the loopback of the machine, through the default bridge': () =>
    reach('host.docker.internal', target.loopback),
  'the whole API of Berth, at my gateway': () => reach(gateway(), target.berth),
  'the whole API of Berth, at the address of the machine': () => reach(target.machine, target.berth),
  'the management API at the worker listener': async () => {
    const { status } = await fetch(process.env.WORKER_URL + '/v2/pods');
    if (status !== 200) throw new Error(String(status));
  },
  'the pods of others with my token': async () => {
    const headers = { authorization: token };
    const { status } = await fetch(process.env.WORKER_URL + '/v2/pods/' + target.victim.id, { headers });
    if (status !== 200) throw new Error(String(status));
  },
  'a stop of the pod of another with my token': () =>
    ask('POST', '/v2/pods/' + target.victim.id + '/action', { action: 'stop' }),
  'a stop of the pod of another over GraphQL': async () => {
    const query = 'mutation { podStop(input: { podId: "' + target.victim.id + '" }) { id } }';
    const text = await ask('POST', '/graphql', { query });
    if (text.includes('"errors"')) throw new Error(text);
  },
  'the files of the pod of another with my token': () => ask('GET', '/v2/pods/' + target.victim.id + '/files?path=/'),
  'the log of the pod of another with my token': () => ask('GET', '/v2/pods/' + target.victim.id + '/logs'),
  'the jobs of another with my token': () => ask('GET', '/v2/' + target.victim.endpoint + '/job-take/mine?gpu=none'),
  'a job for another with my token': () => ask('POST', '/v2/' + target.victim.endpoint + '/run', { input: {} }),
  'a worker of another with a made up token': () => {
    const authorization = 'Bearer rpw_' + 'a'.repeat(43);
    const path = '/v2/' + target.victim.endpoint + '/job-take/mine?gpu=none';
    return ask('GET', path, undefined, { authorization });
  },
  'the accounts with my token': () => ask('GET', '/v2/accounts'),
  'a new key with my token': () => ask('POST', '/v2/account/api-keys', { name: 'mine', access: 'all' }),
  'the interface between servers': () =>
    ask('GET', '/internal/engines/docker/stop?args=%5B%22' + target.victim.id + '%22,1%5D'),
  'the metrics of all accounts': () => ask('GET', '/metrics'),
  'the buckets at the worker listener': () => ask('GET', '/s3/'),
  'the console with a made up session': () => {
    const cookie = 'berth_session=bst_' + 'a'.repeat(43);
    return ask('GET', '/v2/pods', undefined, { authorization: '', cookie });
  },
  'the management API under the address of the server': () =>
    raw('GET http://127.0.0.1:' + target.berth + '/v2/pods HTTP/1.1'),
  'the management API behind a second slash': () => raw('GET //v2/pods HTTP/1.1'),
  'the management API behind a pod': () => raw('GET /proxy/../v2/pods HTTP/1.1'),
  'another cgroup': () => {
    const folders = ['.', ...fs.readdirSync('/sys/fs/cgroup')];
    const joined = folders.filter((name) => {
      try {
        fs.writeFileSync('/sys/fs/cgroup/' + name + '/cgroup.procs', '1', { flag: 'r+' });
        return true;
      } catch {
        return false;
      }
    });
    if (joined.length === 0) throw new Error('none');
  },
  'the program of core dumps': () => fs.writeFileSync('/proc/sys/kernel/core_pattern', '|/bin/sh'),
  'the metadata service of the cloud': () => reach('169.254.169.254', 80),
  'the metadata service of the cloud over IPv6': () => reach('fd00:ec2::254', 80),
  'the abstract socket of the victim': () => connectPath('\0berth-victim'),
  'the shared memory of the victim': () => absent('/dev/shm/victim'),
  'the files of the victim in /tmp': () => absent('/tmp/victim'),
  'the keys that the kernel holds': () => refuseUnless(fs.readFileSync('/proc/keys', 'utf8') !== '', 'masked'),
  'the memory of the machine': () =>
    refuseUnless(fs.readSync(fs.openSync('/proc/kcore'), Buffer.alloc(8)) !== 0, 'masked'),
  'the firmware of the machine': () => refuseUnless(fs.readdirSync('/sys/firmware').length !== 0, 'masked'),
  'the program that runs when a cgroup is empty': () =>
    fs.writeFileSync('/sys/fs/cgroup/memory/release_agent', '/bin/sh'),
  'the files of the machine behind the first process': () => absent('/proc/1/root' + target.data + '/master.key'),
  'a Docker daemon on TCP': () => reach(gateway(), 2375),
  'the Docker socket': () => absent('/var/run/docker.sock', '/run/docker.sock', target.dockerSocket),
  'the data directory of Berth': () => absent(target.data + '/master.key', target.data + '/root.key'),
  'raw packets': () => capability(13),
  'the administration of the machine': () => capability(21),
  'new devices': () => capability(27),
  'the memory of other processes': () => capability(19),
  'more rights by a set-user-id program': () => { if (status('NoNewPrivs') === '1') throw new Error('no'); },
  'a system call filter that is off': () => { if (status('Seccomp') === '2') throw new Error('no'); },
  'a mount': () => run('mount', '-t', 'tmpfs', 'none', '/tmp'),
  'a device node': () => run('mknod', '/tmp/disk', 'b', '8', '0'),
  'a user namespace': () => run('unshare', '--user', '--map-root-user', 'true'),
  'a change of the kernel settings': () => fs.writeFileSync('/proc/sys/kernel/hostname', 'mine'),
  'a restart of the machine': () => fs.writeFileSync('/proc/sysrq-trigger', 'h'),
  'the disks of the machine': () => absent('/dev/sda', '/dev/vda', '/dev/nvme0n1', '/dev/mem'),
  'the processes of the machine': () => process.kill(target.pid, 0),
  'all processes of the machine': async () => {
    const children = [];
    const failed = [];
    for (let made = 0; made < target.pids * 2; made += 1) {
      const child = spawn('sleep', ['60'], { stdio: 'ignore' });
      child.on('error', (error) => failed.push(error));
      children.push(child);
    }
    await new Promise((resolve) => setTimeout(resolve, 300));
    for (const child of children) if (child.pid !== undefined) child.kill('SIGKILL');
    if (failed.length > 0) throw failed[0];
  },
};
const allowed = {
  'the worker listener': async () => { await fetch(process.env.WORKER_URL + '/v2/pods'); },
  'a container of the same account': () => reach(target.friend.address, target.friend.port),
};
(async () => {
  for (const [kind, table] of Object.entries({ attempt: attempts, allowed })) {
    for (const [name, attempt] of Object.entries(table)) {
      const result = await Promise.resolve().then(attempt).then(() => 'reached', () => 'refused');
      console.log(kind + ': ' + name + ': ' + result);
    }
  }
  console.log('done');
  setInterval(() => {}, 1000);
})();
`;

/** What runs in the container that the hostile one looks for things of. */
export const VICTIM = String.raw`
for (const file of ['/dev/shm/victim', '/tmp/victim']) require('node:fs').writeFileSync(file, 'secret');
const serve = () => require('node:net').createServer((socket) => socket.end());
serve().listen('\0berth-victim', () => serve().listen(7000, () => console.log('listening')));
`;
