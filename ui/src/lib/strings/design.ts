/** Texts of the page that shows the design system. */
export const design = {
  title: 'Design',
  text: 'All components with their states. Build pages from these and from the tokens alone.',
  colours: 'Colours',
  type: 'Type',
  spacing: 'Spacing',
  buttons: 'Buttons',
  fields: 'Fields',
  badges: 'Badges',
  notes: 'Notes',
  navigation: 'Tabs and filters',
  data: 'Data',
  overlays: 'Dialogs, menus and messages',
  content: 'Content',
  states: 'States',
  icons: 'Icons',
}
