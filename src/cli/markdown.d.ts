/** A page as text, which the bundle holds. */
declare module "*.md" {
  const text: string;
  export default text;
}
