// SPDX-License-Identifier: BSL-1.0
//
// A program without MPI that loads a plug-in, whose functions no other object sees:
// with_plug_in PLUG_IN.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* const plug_in = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!plug_in) {
    fprintf(stderr, "with_plug_in: %s\n", dlerror());
    return 1;
  }
  int (*const start)(void) = (int (*)(void))dlsym(plug_in, "start");
  int (*const sum)(int*, int*) = (int (*)(int*, int*))dlsym(plug_in, "sum");
  int (*const end)(void) = (int (*)(void))dlsym(plug_in, "end");
  start();
  int ones = 1, all = 0, wrong = 0;
  for (int call = 0; call < 20; ++call) wrong += sum(&ones, &all) != 0 || all < 2;
  if (wrong > 0) printf("%d wrong\n", wrong);
  end();
  return 0;
}
