/** Reports what is being done, a line at a time. */
export type Report = (line: string) => void;
