import { spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import type { DaemonAddress } from './daemon-address.ts';

const CONNECT_TIMEOUT_SECONDS = 15;
const MAX_REASON_LENGTH = 500;

/**
 * A connection to a daemon of another machine, as Docker's own command makes it: `ssh` of this machine, with its
 * configuration, keys and agent, runs `docker system dial-stdio` there.
 */
export function connectOverSsh({ host, port, username }: Extract<DaemonAddress, { kind: 'ssh' }>): Duplex {
  const child = spawn(
    'ssh',
    [
      ...['-T', '-o', 'BatchMode=yes', '-o', `ConnectTimeout=${CONNECT_TIMEOUT_SECONDS}`],
      ...(username === undefined ? [] : ['-l', username]),
      ...(port === undefined ? [] : ['-p', port]),
      ...['--', host, 'docker', 'system', 'dial-stdio'],
    ],
    { stdio: 'pipe' },
  );
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaint = (complaint + chunk.toString()).slice(-MAX_REASON_LENGTH);
  });
  const connection = new Duplex({
    read: () => child.stdout.resume(),
    // An error here says less than why the program ended, which is reported below.
    write: (chunk: Buffer, _, callback) => void child.stdin.write(chunk, () => callback()),
    final: (callback) => void child.stdin.end(() => callback()),
    destroy: (error, callback) => {
      child.kill();
      callback(error);
    },
  });
  child.stdout.on('data', (chunk: Buffer) => {
    if (!connection.push(chunk)) child.stdout.pause();
  });
  child.stdin.on('error', () => undefined);
  child.on('error', (error) => connection.destroy(new Error(`ssh cannot be run: ${error.message}`)));
  child.on('close', (code) => {
    if (code === 0) connection.push(null);
    else connection.destroy(new Error(`ssh ${host}: ${complaint.trim() || `ended with exit code ${code}`}`));
  });
  return connection;
}
