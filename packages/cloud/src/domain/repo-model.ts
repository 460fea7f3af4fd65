import type { OwnedRecord } from './records.ts';

/** A model that an account has written down, to name it in endpoints. */
export interface RepoModel extends OwnedRecord {
  /** With the name, one for each account. */
  owner: string;
  name: string;
  provider: string;
  status: string;
  credentialType: string | null;
  credentialReference: string | null;
  versions: ModelVersion[];
  updatedAt: number;
}

export interface ModelVersion {
  uuid: string;
  hash: string;
  status: ModelVersionStatus;
  metadata: unknown;
  createdAt: number;
  updatedAt: number;
}

export type ModelVersionStatus = 'PENDING' | 'READY' | 'POD_REMOVED' | 'FAILED';
