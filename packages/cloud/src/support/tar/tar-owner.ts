import { TarError } from './tar-read.ts';

/** A file of another user in an account's folder can only be a second name of a file elsewhere. */
export function checkOwner(name: string, uid: number, wanted: number | undefined): void {
  if (wanted !== undefined && uid !== wanted)
    throw new TarError(`${JSON.stringify(name.slice(0, 80))} belongs to another user of the machine`);
}
