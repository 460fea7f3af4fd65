/** Something that opens an account, and how it is taken away. */
export interface Revocation {
  path: string;
  title: string;
  lost: string;
  action: string;
}

export interface KeyListProps {
  canManage: boolean;
  onRevoke: (revocation: Revocation) => void;
}

export const API_KEYS = '/v2/account/api-keys';
export const S3_KEYS = '/v2/account/s3-keys';
export const SESSIONS = '/v2/sessions';
