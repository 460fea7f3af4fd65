// rclone comes from the system: there is nothing to install beside it.
import { spawnSync } from 'node:child_process';

if (spawnSync('rclone', ['version']).status !== 0) {
  process.stderr.write('rclone is not installed here\n');
  process.exit(1);
}
