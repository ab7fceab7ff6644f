export const zip = {
  damaged: 'The directory of the zip is damaged.',
  none: 'This file is not a zip.',
  tooLarge: 'This file is too large to show.',
  unknownMethod: 'This file is packed in a way that browsers cannot read.',
}
