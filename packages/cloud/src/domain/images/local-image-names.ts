import { ROOT_ACCOUNT_ID } from '../caller.ts';
import { MAX_LOCAL_IMAGE_NAME_LENGTH, LOCAL_IMAGE_NAME_PATTERN } from '../limits.ts';

/**
 * An image of the process engine is a folder that someone uploaded. `local/<name>:<digest>` is one
 * of the root account; `local/<account>.<name>:<digest>` is one of any other. A name itself has no
 * dot, so the name says which account owns an image, and nobody can write a name of another
 * account's image by accident.
 */

/** The bare machine has this name. */
const RESERVED_NAME = 'shell';

const LOCAL_IMAGE_PATTERN = /^local\/([^:]+)(?::(.*))?$/s;

export function localImageNameFindings(name: string): string[] {
  if (!new RegExp(LOCAL_IMAGE_NAME_PATTERN).test(name))
    return [
      `an image's name has lower-case letters and digits, with single dashes or underscores between ` +
        `them, got ${JSON.stringify(name.slice(0, 80))}`,
    ];
  if (name.length > MAX_LOCAL_IMAGE_NAME_LENGTH)
    return [`an image's name has at most ${MAX_LOCAL_IMAGE_NAME_LENGTH} characters`];
  return name === RESERVED_NAME
    ? [`"${RESERVED_NAME}" is the bare machine and can be no image of yours; choose another name`]
    : [];
}

/** What stands between `local/` and the digest; the folder of the images of this name is called so too. */
export function qualifiedImageName(accountId: string, name: string): string {
  return accountId === ROOT_ACCOUNT_ID ? name : `${accountId}.${name}`;
}

/** The name as its owner gave it; undefined where it is another account's. */
export function unqualifiedImageName(accountId: string, owned: string): string | undefined {
  const [owner, name] = owned.includes('.') ? owned.split('.', 2) : [ROOT_ACCOUNT_ID, owned];
  return owner === accountId && name !== undefined && localImageNameFindings(name).length === 0
    ? name
    : undefined;
}

export function localImageReference(accountId: string, name: string, digest: string): string {
  return `local/${qualifiedImageName(accountId, name)}:${digest}`;
}

/**
 * Why an account may not run this image; undefined where it may, or where the image is no uploaded folder.
 */
export function foreignImageReason(accountId: string, image: string): string | undefined {
  const [, name, tag = 'latest'] = LOCAL_IMAGE_PATTERN.exec(image) ?? [];
  if (name === undefined || name === RESERVED_NAME) return undefined;
  // Without a digest it is one of the examples, which are everybody's.
  const owner = name.includes('.') ? name.split('.', 1)[0] : tag === 'latest' ? accountId : ROOT_ACCOUNT_ID;
  return owner === accountId
    ? undefined
    : `the image ${JSON.stringify(image.slice(0, 200))} belongs to another account; "berth deploy" ` +
        'makes one of your own from a folder';
}
