/**
 * Counts of operations that a worker has begun and ended since its start. Both numbers of a pair are equal whenever
 * nothing is in progress: code that counts a beginning also counts the end, however it ends.
 */
export const tally = {
  exchangesBegun: 0,
  exchangesOver: 0,
  /** Descriptors of files that are sent. */
  filesOpened: 0,
  filesClosed: 0,
  /** Bytes of responses that were read and went to no client: a piece for each exchange at most. */
  bytesForNobody: 0,
  /** Lines of logs that were dropped. */
  logLinesLost: 0,
};
