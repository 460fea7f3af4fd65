// OpenSSH comes from the system, its client and its server: there is nothing to install beside it.
import { existsSync } from 'node:fs';
import { spawnSync } from 'node:child_process';

if (spawnSync('ssh', ['-V']).status !== 0 || !existsSync('/usr/sbin/sshd')) {
  process.stderr.write('OpenSSH is not installed here, or not its server\n');
  process.exit(1);
}
