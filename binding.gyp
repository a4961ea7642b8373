{
  # npm's `install` script is scripts/install.js; this file serves `node-gyp rebuild` and tools that look for it.
  "targets": [
    {
      "target_name": "boq_native_cmake",
      "type": "none",
      "actions": [
        {
          "action_name": "setup",
          "inputs": [],
          "outputs": ["<(module_root_dir)/build/Release/boq_native.node"],
          "action": ["node", "<(module_root_dir)/scripts/setup.js"]
        }
      ]
    }
  ]
}
