/** Reports what is being done, one line at a time. */
export type Report = (line: string) => void;
