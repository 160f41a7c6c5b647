import { ValidateBinaryVersion } from "cdktf/lib/validations/validate-binary-version";

// cdktf runs `terraform version` again for each `terraform_data`, a quarter of a second each time: here once per requirement.
const validate = ValidateBinaryVersion.prototype.validate;
const verdicts = new Map<string, string[]>();
ValidateBinaryVersion.prototype.validate = function (this: ValidateBinaryVersion) {
  const requirement = JSON.stringify(this);
  if (!verdicts.has(requirement)) verdicts.set(requirement, validate.call(this));
  return verdicts.get(requirement)!;
};
