import type { LoginRequest } from '../domain/login-request.ts';

export interface LoginRequestStore {
  /**
   * Those that have expired go. False where as many as `atMost` are open already: anybody may ask, so
   * something must end it.
   */
  insert(request: LoginRequest, atMost: number): Promise<boolean>;
  find(id: string): Promise<LoginRequest | undefined>;
  /** As `Collection.change`. */
  change(id: string, next: (current: LoginRequest) => LoginRequest): Promise<LoginRequest | undefined>;
}
