/** The user and the group that a file belongs to. */
export interface FileOwner {
  uid: number;
  gid: number;
}
