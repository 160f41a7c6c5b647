/** A module and all that it imports as one script, which the bundle holds as text. */
declare module "*?text" {
  const text: string;
  export default text;
}
