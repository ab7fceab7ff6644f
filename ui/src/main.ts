import { mount } from 'svelte'
import App from './App.svelte'
import './lib/design/base.css'
import { start } from './lib/router.svelte'

start()
const target = document.getElementById('app')
if (target) mount(App, { target })
