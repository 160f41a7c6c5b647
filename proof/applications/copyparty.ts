import { pythonPackage } from "../../testkit/pythonPackage.js";

const environment = pythonPackage("copyparty", "1.20.26");
export const COPYPARTY = environment.programs;
export const prepareCopyparty = environment.prepare;
