module @jit_apply attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<256xf32>, %arg1: tensor<64x256xf32>, %arg2: tensor<64xf32>, %arg3: tensor<256x64xf32>, %arg4: tensor<256xf32>, %arg5: tensor<64x256xf32>, %arg6: tensor<64xf32>, %arg7: tensor<256x64xf32>, %arg8: tensor<1000xf32>, %arg9: tensor<64x1000xf32>, %arg10: tensor<1000x64xf32>, %arg11: tensor<64xf32>, %arg12: tensor<64xf32>, %arg13: tensor<64xf32>, %arg14: tensor<64xf32>, %arg15: tensor<64xf32>, %arg16: tensor<64xf32>, %arg17: tensor<64xf32>, %arg18: tensor<64xf32>, %arg19: tensor<4x16xf32>, %arg20: tensor<64x4x16xf32>, %arg21: tensor<64xf32>, %arg22: tensor<4x16x64xf32>, %arg23: tensor<4x16xf32>, %arg24: tensor<64x4x16xf32>, %arg25: tensor<4x16xf32>, %arg26: tensor<64x4x16xf32>, %arg27: tensor<4x16xf32>, %arg28: tensor<64x4x16xf32>, %arg29: tensor<64xf32>, %arg30: tensor<4x16x64xf32>, %arg31: tensor<4x16xf32>, %arg32: tensor<64x4x16xf32>, %arg33: tensor<4x16xf32>, %arg34: tensor<64x4x16xf32>, %arg35: tensor<2x16xi32>) -> (tensor<2x16x1000xf32> {jax.result_info = ""}) {
    %0 = call @_take(%arg10, %arg35) : (tensor<1000x64xf32>, tensor<2x16xi32>) -> tensor<2x16x64xf32>
    %1 = stablehlo.multiply %0, %0 : tensor<2x16x64xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x16x64xf32>, tensor<f32>) -> tensor<2x16xf32>
    %cst_0 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x16xf32>
    %4 = stablehlo.divide %2, %3 : tensor<2x16xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.reduce(%1 init: %cst_1) applies stablehlo.add across dimensions = [2] : (tensor<2x16x64xf32>, tensor<f32>) -> tensor<2x16xf32>
    %cst_2 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x16xf32>
    %7 = stablehlo.divide %5, %6 : tensor<2x16xf32>
    %8 = stablehlo.multiply %4, %4 : tensor<2x16xf32>
    %9 = stablehlo.subtract %7, %8 : tensor<2x16xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x16xf32>
    %11 = stablehlo.maximum %10, %9 : tensor<2x16xf32>
    %12 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %13 = stablehlo.broadcast_in_dim %11, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %14 = stablehlo.broadcast_in_dim %12, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %15 = stablehlo.subtract %0, %14 : tensor<2x16x64xf32>
    %cst_4 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %17 = stablehlo.add %13, %16 : tensor<2x16x1xf32>
    %18 = stablehlo.rsqrt %17 : tensor<2x16x1xf32>
    %19 = stablehlo.reshape %arg12 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %20 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %21 = stablehlo.broadcast_in_dim %19, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %22 = stablehlo.multiply %20, %21 : tensor<2x16x64xf32>
    %23 = stablehlo.multiply %15, %22 : tensor<2x16x64xf32>
    %24 = stablehlo.reshape %arg11 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %26 = stablehlo.add %23, %25 : tensor<2x16x64xf32>
    %27 = stablehlo.dot_general %26, %arg24, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x4x16xf32>) -> tensor<2x16x4x16xf32>
    %28 = stablehlo.reshape %arg23 : (tensor<4x16xf32>) -> tensor<1x1x4x16xf32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [0, 1, 2, 3] : (tensor<1x1x4x16xf32>) -> tensor<2x16x4x16xf32>
    %30 = stablehlo.add %27, %29 : tensor<2x16x4x16xf32>
    %31 = stablehlo.dot_general %26, %arg20, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x4x16xf32>) -> tensor<2x16x4x16xf32>
    %32 = stablehlo.reshape %arg19 : (tensor<4x16xf32>) -> tensor<1x1x4x16xf32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [0, 1, 2, 3] : (tensor<1x1x4x16xf32>) -> tensor<2x16x4x16xf32>
    %34 = stablehlo.add %31, %33 : tensor<2x16x4x16xf32>
    %35 = stablehlo.dot_general %26, %arg26, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x4x16xf32>) -> tensor<2x16x4x16xf32>
    %36 = stablehlo.reshape %arg25 : (tensor<4x16xf32>) -> tensor<1x1x4x16xf32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [0, 1, 2, 3] : (tensor<1x1x4x16xf32>) -> tensor<2x16x4x16xf32>
    %38 = stablehlo.add %35, %37 : tensor<2x16x4x16xf32>
    %cst_5 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %39 = stablehlo.sqrt %cst_5 : tensor<f32>
    %40 = stablehlo.convert %39 : tensor<f32>
    %41 = stablehlo.broadcast_in_dim %40, dims = [] : (tensor<f32>) -> tensor<2x16x4x16xf32>
    %42 = stablehlo.divide %30, %41 : tensor<2x16x4x16xf32>
    %43 = stablehlo.dot_general %42, %34, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x16x4x16xf32>, tensor<2x16x4x16xf32>) -> tensor<2x4x16x16xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %44 = stablehlo.reduce(%43 init: %cst_6) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x16x16xf32>, tensor<f32>) -> tensor<2x4x16xf32>
    %cst_7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<2x4x16xf32>
    %46 = stablehlo.maximum %45, %44 : tensor<2x4x16xf32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [0, 1, 2] : (tensor<2x4x16xf32>) -> tensor<2x4x16x1xf32>
    %48 = stablehlo.broadcast_in_dim %47, dims = [0, 1, 2, 3] : (tensor<2x4x16x1xf32>) -> tensor<2x4x16x16xf32>
    %49 = stablehlo.subtract %43, %48 : tensor<2x4x16x16xf32>
    %50 = stablehlo.exponential %49 : tensor<2x4x16x16xf32>
    %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %51 = stablehlo.reduce(%50 init: %cst_8) applies stablehlo.add across dimensions = [3] : (tensor<2x4x16x16xf32>, tensor<f32>) -> tensor<2x4x16xf32>
    %52 = stablehlo.broadcast_in_dim %51, dims = [0, 1, 2] : (tensor<2x4x16xf32>) -> tensor<2x4x16x1xf32>
    %53 = stablehlo.broadcast_in_dim %52, dims = [0, 1, 2, 3] : (tensor<2x4x16x1xf32>) -> tensor<2x4x16x16xf32>
    %54 = stablehlo.divide %50, %53 : tensor<2x4x16x16xf32>
    %55 = stablehlo.dot_general %38, %54, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x16x4x16xf32>, tensor<2x4x16x16xf32>) -> tensor<2x4x16x16xf32>
    %56 = stablehlo.transpose %55, dims = [0, 3, 1, 2] : (tensor<2x4x16x16xf32>) -> tensor<2x16x4x16xf32>
    %57 = stablehlo.dot_general %56, %arg22, contracting_dims = [2, 3] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x16x4x16xf32>, tensor<4x16x64xf32>) -> tensor<2x16x64xf32>
    %58 = stablehlo.reshape %arg21 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %59 = stablehlo.broadcast_in_dim %58, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %60 = stablehlo.add %57, %59 : tensor<2x16x64xf32>
    %61 = stablehlo.add %0, %60 : tensor<2x16x64xf32>
    %62 = stablehlo.multiply %61, %61 : tensor<2x16x64xf32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %63 = stablehlo.reduce(%61 init: %cst_9) applies stablehlo.add across dimensions = [2] : (tensor<2x16x64xf32>, tensor<f32>) -> tensor<2x16xf32>
    %cst_10 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %64 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<2x16xf32>
    %65 = stablehlo.divide %63, %64 : tensor<2x16xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %66 = stablehlo.reduce(%62 init: %cst_11) applies stablehlo.add across dimensions = [2] : (tensor<2x16x64xf32>, tensor<f32>) -> tensor<2x16xf32>
    %cst_12 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %67 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<2x16xf32>
    %68 = stablehlo.divide %66, %67 : tensor<2x16xf32>
    %69 = stablehlo.multiply %65, %65 : tensor<2x16xf32>
    %70 = stablehlo.subtract %68, %69 : tensor<2x16xf32>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %71 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<2x16xf32>
    %72 = stablehlo.maximum %71, %70 : tensor<2x16xf32>
    %73 = stablehlo.broadcast_in_dim %65, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %74 = stablehlo.broadcast_in_dim %72, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %75 = stablehlo.broadcast_in_dim %73, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %76 = stablehlo.subtract %61, %75 : tensor<2x16x64xf32>
    %cst_14 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %77 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %78 = stablehlo.add %74, %77 : tensor<2x16x1xf32>
    %79 = stablehlo.rsqrt %78 : tensor<2x16x1xf32>
    %80 = stablehlo.reshape %arg14 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %81 = stablehlo.broadcast_in_dim %79, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %82 = stablehlo.broadcast_in_dim %80, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %83 = stablehlo.multiply %81, %82 : tensor<2x16x64xf32>
    %84 = stablehlo.multiply %76, %83 : tensor<2x16x64xf32>
    %85 = stablehlo.reshape %arg13 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %86 = stablehlo.broadcast_in_dim %85, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %87 = stablehlo.add %84, %86 : tensor<2x16x64xf32>
    %88 = stablehlo.dot_general %87, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x256xf32>) -> tensor<2x16x256xf32>
    %89 = stablehlo.reshape %arg0 : (tensor<256xf32>) -> tensor<1x1x256xf32>
    %90 = stablehlo.broadcast_in_dim %89, dims = [0, 1, 2] : (tensor<1x1x256xf32>) -> tensor<2x16x256xf32>
    %91 = stablehlo.add %88, %90 : tensor<2x16x256xf32>
    %92 = stablehlo.multiply %91, %91 : tensor<2x16x256xf32>
    %93 = stablehlo.multiply %92, %91 : tensor<2x16x256xf32>
    %cst_15 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %94 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<2x16x256xf32>
    %95 = stablehlo.multiply %94, %93 : tensor<2x16x256xf32>
    %96 = stablehlo.add %91, %95 : tensor<2x16x256xf32>
    %cst_16 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %97 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<2x16x256xf32>
    %98 = stablehlo.multiply %97, %96 : tensor<2x16x256xf32>
    %99 = stablehlo.tanh %98 : tensor<2x16x256xf32>
    %cst_17 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %100 = stablehlo.broadcast_in_dim %cst_17, dims = [] : (tensor<f32>) -> tensor<2x16x256xf32>
    %101 = stablehlo.add %100, %99 : tensor<2x16x256xf32>
    %cst_18 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %102 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<2x16x256xf32>
    %103 = stablehlo.multiply %102, %101 : tensor<2x16x256xf32>
    %104 = stablehlo.multiply %91, %103 : tensor<2x16x256xf32>
    %105 = stablehlo.dot_general %104, %arg3, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x256xf32>, tensor<256x64xf32>) -> tensor<2x16x64xf32>
    %106 = stablehlo.reshape %arg2 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %107 = stablehlo.broadcast_in_dim %106, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %108 = stablehlo.add %105, %107 : tensor<2x16x64xf32>
    %109 = stablehlo.add %61, %108 : tensor<2x16x64xf32>
    %110 = stablehlo.multiply %109, %109 : tensor<2x16x64xf32>
    %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %111 = stablehlo.reduce(%109 init: %cst_19) applies stablehlo.add across dimensions = [2] : (tensor<2x16x64xf32>, tensor<f32>) -> tensor<2x16xf32>
    %cst_20 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %112 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<2x16xf32>
    %113 = stablehlo.divide %111, %112 : tensor<2x16xf32>
    %cst_21 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %114 = stablehlo.reduce(%110 init: %cst_21) applies stablehlo.add across dimensions = [2] : (tensor<2x16x64xf32>, tensor<f32>) -> tensor<2x16xf32>
    %cst_22 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %115 = stablehlo.broadcast_in_dim %cst_22, dims = [] : (tensor<f32>) -> tensor<2x16xf32>
    %116 = stablehlo.divide %114, %115 : tensor<2x16xf32>
    %117 = stablehlo.multiply %113, %113 : tensor<2x16xf32>
    %118 = stablehlo.subtract %116, %117 : tensor<2x16xf32>
    %cst_23 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %119 = stablehlo.broadcast_in_dim %cst_23, dims = [] : (tensor<f32>) -> tensor<2x16xf32>
    %120 = stablehlo.maximum %119, %118 : tensor<2x16xf32>
    %121 = stablehlo.broadcast_in_dim %113, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %122 = stablehlo.broadcast_in_dim %120, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %123 = stablehlo.broadcast_in_dim %121, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %124 = stablehlo.subtract %109, %123 : tensor<2x16x64xf32>
    %cst_24 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %125 = stablehlo.broadcast_in_dim %cst_24, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %126 = stablehlo.add %122, %125 : tensor<2x16x1xf32>
    %127 = stablehlo.rsqrt %126 : tensor<2x16x1xf32>
    %128 = stablehlo.reshape %arg16 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %129 = stablehlo.broadcast_in_dim %127, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %130 = stablehlo.broadcast_in_dim %128, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %131 = stablehlo.multiply %129, %130 : tensor<2x16x64xf32>
    %132 = stablehlo.multiply %124, %131 : tensor<2x16x64xf32>
    %133 = stablehlo.reshape %arg15 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %134 = stablehlo.broadcast_in_dim %133, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %135 = stablehlo.add %132, %134 : tensor<2x16x64xf32>
    %136 = stablehlo.dot_general %135, %arg32, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x4x16xf32>) -> tensor<2x16x4x16xf32>
    %137 = stablehlo.reshape %arg31 : (tensor<4x16xf32>) -> tensor<1x1x4x16xf32>
    %138 = stablehlo.broadcast_in_dim %137, dims = [0, 1, 2, 3] : (tensor<1x1x4x16xf32>) -> tensor<2x16x4x16xf32>
    %139 = stablehlo.add %136, %138 : tensor<2x16x4x16xf32>
    %140 = stablehlo.dot_general %135, %arg28, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x4x16xf32>) -> tensor<2x16x4x16xf32>
    %141 = stablehlo.reshape %arg27 : (tensor<4x16xf32>) -> tensor<1x1x4x16xf32>
    %142 = stablehlo.broadcast_in_dim %141, dims = [0, 1, 2, 3] : (tensor<1x1x4x16xf32>) -> tensor<2x16x4x16xf32>
    %143 = stablehlo.add %140, %142 : tensor<2x16x4x16xf32>
    %144 = stablehlo.dot_general %135, %arg34, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x4x16xf32>) -> tensor<2x16x4x16xf32>
    %145 = stablehlo.reshape %arg33 : (tensor<4x16xf32>) -> tensor<1x1x4x16xf32>
    %146 = stablehlo.broadcast_in_dim %145, dims = [0, 1, 2, 3] : (tensor<1x1x4x16xf32>) -> tensor<2x16x4x16xf32>
    %147 = stablehlo.add %144, %146 : tensor<2x16x4x16xf32>
    %cst_25 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %148 = stablehlo.sqrt %cst_25 : tensor<f32>
    %149 = stablehlo.convert %148 : tensor<f32>
    %150 = stablehlo.broadcast_in_dim %149, dims = [] : (tensor<f32>) -> tensor<2x16x4x16xf32>
    %151 = stablehlo.divide %139, %150 : tensor<2x16x4x16xf32>
    %152 = stablehlo.dot_general %151, %143, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x16x4x16xf32>, tensor<2x16x4x16xf32>) -> tensor<2x4x16x16xf32>
    %cst_26 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %153 = stablehlo.reduce(%152 init: %cst_26) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x16x16xf32>, tensor<f32>) -> tensor<2x4x16xf32>
    %cst_27 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %154 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<2x4x16xf32>
    %155 = stablehlo.maximum %154, %153 : tensor<2x4x16xf32>
    %156 = stablehlo.broadcast_in_dim %155, dims = [0, 1, 2] : (tensor<2x4x16xf32>) -> tensor<2x4x16x1xf32>
    %157 = stablehlo.broadcast_in_dim %156, dims = [0, 1, 2, 3] : (tensor<2x4x16x1xf32>) -> tensor<2x4x16x16xf32>
    %158 = stablehlo.subtract %152, %157 : tensor<2x4x16x16xf32>
    %159 = stablehlo.exponential %158 : tensor<2x4x16x16xf32>
    %cst_28 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %160 = stablehlo.reduce(%159 init: %cst_28) applies stablehlo.add across dimensions = [3] : (tensor<2x4x16x16xf32>, tensor<f32>) -> tensor<2x4x16xf32>
    %161 = stablehlo.broadcast_in_dim %160, dims = [0, 1, 2] : (tensor<2x4x16xf32>) -> tensor<2x4x16x1xf32>
    %162 = stablehlo.broadcast_in_dim %161, dims = [0, 1, 2, 3] : (tensor<2x4x16x1xf32>) -> tensor<2x4x16x16xf32>
    %163 = stablehlo.divide %159, %162 : tensor<2x4x16x16xf32>
    %164 = stablehlo.dot_general %147, %163, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x16x4x16xf32>, tensor<2x4x16x16xf32>) -> tensor<2x4x16x16xf32>
    %165 = stablehlo.transpose %164, dims = [0, 3, 1, 2] : (tensor<2x4x16x16xf32>) -> tensor<2x16x4x16xf32>
    %166 = stablehlo.dot_general %165, %arg30, contracting_dims = [2, 3] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<2x16x4x16xf32>, tensor<4x16x64xf32>) -> tensor<2x16x64xf32>
    %167 = stablehlo.reshape %arg29 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %168 = stablehlo.broadcast_in_dim %167, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %169 = stablehlo.add %166, %168 : tensor<2x16x64xf32>
    %170 = stablehlo.add %109, %169 : tensor<2x16x64xf32>
    %171 = stablehlo.multiply %170, %170 : tensor<2x16x64xf32>
    %cst_29 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %172 = stablehlo.reduce(%170 init: %cst_29) applies stablehlo.add across dimensions = [2] : (tensor<2x16x64xf32>, tensor<f32>) -> tensor<2x16xf32>
    %cst_30 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %173 = stablehlo.broadcast_in_dim %cst_30, dims = [] : (tensor<f32>) -> tensor<2x16xf32>
    %174 = stablehlo.divide %172, %173 : tensor<2x16xf32>
    %cst_31 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %175 = stablehlo.reduce(%171 init: %cst_31) applies stablehlo.add across dimensions = [2] : (tensor<2x16x64xf32>, tensor<f32>) -> tensor<2x16xf32>
    %cst_32 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %176 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<2x16xf32>
    %177 = stablehlo.divide %175, %176 : tensor<2x16xf32>
    %178 = stablehlo.multiply %174, %174 : tensor<2x16xf32>
    %179 = stablehlo.subtract %177, %178 : tensor<2x16xf32>
    %cst_33 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %180 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<2x16xf32>
    %181 = stablehlo.maximum %180, %179 : tensor<2x16xf32>
    %182 = stablehlo.broadcast_in_dim %174, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %183 = stablehlo.broadcast_in_dim %181, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %184 = stablehlo.broadcast_in_dim %182, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %185 = stablehlo.subtract %170, %184 : tensor<2x16x64xf32>
    %cst_34 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %186 = stablehlo.broadcast_in_dim %cst_34, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %187 = stablehlo.add %183, %186 : tensor<2x16x1xf32>
    %188 = stablehlo.rsqrt %187 : tensor<2x16x1xf32>
    %189 = stablehlo.reshape %arg18 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %190 = stablehlo.broadcast_in_dim %188, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x64xf32>
    %191 = stablehlo.broadcast_in_dim %189, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %192 = stablehlo.multiply %190, %191 : tensor<2x16x64xf32>
    %193 = stablehlo.multiply %185, %192 : tensor<2x16x64xf32>
    %194 = stablehlo.reshape %arg17 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %195 = stablehlo.broadcast_in_dim %194, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %196 = stablehlo.add %193, %195 : tensor<2x16x64xf32>
    %197 = stablehlo.dot_general %196, %arg5, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x256xf32>) -> tensor<2x16x256xf32>
    %198 = stablehlo.reshape %arg4 : (tensor<256xf32>) -> tensor<1x1x256xf32>
    %199 = stablehlo.broadcast_in_dim %198, dims = [0, 1, 2] : (tensor<1x1x256xf32>) -> tensor<2x16x256xf32>
    %200 = stablehlo.add %197, %199 : tensor<2x16x256xf32>
    %201 = stablehlo.multiply %200, %200 : tensor<2x16x256xf32>
    %202 = stablehlo.multiply %201, %200 : tensor<2x16x256xf32>
    %cst_35 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %203 = stablehlo.broadcast_in_dim %cst_35, dims = [] : (tensor<f32>) -> tensor<2x16x256xf32>
    %204 = stablehlo.multiply %203, %202 : tensor<2x16x256xf32>
    %205 = stablehlo.add %200, %204 : tensor<2x16x256xf32>
    %cst_36 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %206 = stablehlo.broadcast_in_dim %cst_36, dims = [] : (tensor<f32>) -> tensor<2x16x256xf32>
    %207 = stablehlo.multiply %206, %205 : tensor<2x16x256xf32>
    %208 = stablehlo.tanh %207 : tensor<2x16x256xf32>
    %cst_37 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %209 = stablehlo.broadcast_in_dim %cst_37, dims = [] : (tensor<f32>) -> tensor<2x16x256xf32>
    %210 = stablehlo.add %209, %208 : tensor<2x16x256xf32>
    %cst_38 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %211 = stablehlo.broadcast_in_dim %cst_38, dims = [] : (tensor<f32>) -> tensor<2x16x256xf32>
    %212 = stablehlo.multiply %211, %210 : tensor<2x16x256xf32>
    %213 = stablehlo.multiply %200, %212 : tensor<2x16x256xf32>
    %214 = stablehlo.dot_general %213, %arg7, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x256xf32>, tensor<256x64xf32>) -> tensor<2x16x64xf32>
    %215 = stablehlo.reshape %arg6 : (tensor<64xf32>) -> tensor<1x1x64xf32>
    %216 = stablehlo.broadcast_in_dim %215, dims = [0, 1, 2] : (tensor<1x1x64xf32>) -> tensor<2x16x64xf32>
    %217 = stablehlo.add %214, %216 : tensor<2x16x64xf32>
    %218 = stablehlo.add %170, %217 : tensor<2x16x64xf32>
    %219 = stablehlo.dot_general %218, %arg9, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xf32>, tensor<64x1000xf32>) -> tensor<2x16x1000xf32>
    %220 = stablehlo.reshape %arg8 : (tensor<1000xf32>) -> tensor<1x1x1000xf32>
    %221 = stablehlo.broadcast_in_dim %220, dims = [0, 1, 2] : (tensor<1x1x1000xf32>) -> tensor<2x16x1000xf32>
    %222 = stablehlo.add %219, %221 : tensor<2x16x1000xf32>
    return %222 : tensor<2x16x1000xf32>
  }
  func.func private @_take(%arg0: tensor<1000x64xf32>, %arg1: tensor<2x16xi32>) -> tensor<2x16x64xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2x16xi32>
    %1 = stablehlo.compare  LT, %arg1, %0,  SIGNED : (tensor<2x16xi32>, tensor<2x16xi32>) -> tensor<2x16xi1>
    %c_0 = stablehlo.constant dense<1000> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2x16xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<2x16xi32>
    %4 = call @_where(%1, %3, %arg1) : (tensor<2x16xi1>, tensor<2x16xi32>, tensor<2x16xi32>) -> tensor<2x16xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<2x16xi32>) -> tensor<2x16x1xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<1xi32>
    %c_3 = stablehlo.constant dense<1000> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %c_4 = stablehlo.constant dense<64> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %8 = stablehlo.concatenate %6, %7, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %9 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %10 = stablehlo.compare  LT, %c_1, %9,  SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %c_6 = stablehlo.constant dense<2> : tensor<i32>
    %11 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %12 = stablehlo.add %c_1, %11 : tensor<1xi32>
    %13 = stablehlo.select %10, %12, %c_1 : tensor<1xi1>, tensor<1xi32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0] : (tensor<1xi32>) -> tensor<1x1xi32>
    %15 = "stablehlo.gather"(%8, %14) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<2xi32>, tensor<1x1xi32>) -> tensor<1xi32>
    %c_7 = stablehlo.constant dense<1> : tensor<i32>
    %16 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %c_8 = stablehlo.constant dense<64> : tensor<i32>
    %17 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %18 = stablehlo.concatenate %16, %17, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %c_9 = stablehlo.constant dense<0> : tensor<i32>
    %19 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %20 = stablehlo.compare  LT, %c_2, %19,  SIGNED : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi1>
    %c_10 = stablehlo.constant dense<2> : tensor<i32>
    %21 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %22 = stablehlo.add %c_2, %21 : tensor<1xi32>
    %23 = stablehlo.select %20, %22, %c_2 : tensor<1xi1>, tensor<1xi32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [0] : (tensor<1xi32>) -> tensor<1x1xi32>
    %25 = "stablehlo.gather"(%18, %24) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<2xi32>, tensor<1x1xi32>) -> tensor<1xi32>
    %26 = stablehlo.subtract %15, %25 : tensor<1xi32>
    %c_11 = stablehlo.constant dense<0> : tensor<i32>
    %27 = stablehlo.broadcast_in_dim %c_11, dims = [] : (tensor<i32>) -> tensor<2x16x1xi32>
    %28 = stablehlo.compare  GE, %5, %27,  SIGNED : (tensor<2x16x1xi32>, tensor<2x16x1xi32>) -> tensor<2x16x1xi1>
    %29 = stablehlo.broadcast_in_dim %26, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<2x16x1xi32>
    %31 = stablehlo.compare  LE, %5, %30,  SIGNED : (tensor<2x16x1xi32>, tensor<2x16x1xi32>) -> tensor<2x16x1xi1>
    %32 = stablehlo.and %28, %31 : tensor<2x16x1xi1>
    %c_12 = stablehlo.constant dense<true> : tensor<i1>
    %33 = stablehlo.reduce(%32 init: %c_12) applies stablehlo.and across dimensions = [2] : (tensor<2x16x1xi1>, tensor<i1>) -> tensor<2x16xi1>
    %34 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 64>}> : (tensor<1000x64xf32>, tensor<2x16x1xi32>) -> tensor<2x16x64xf32>
    %35 = stablehlo.broadcast_in_dim %33, dims = [0, 1] : (tensor<2x16xi1>) -> tensor<2x16x64xi1>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %36 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x16x64xf32>
    %37 = stablehlo.select %35, %34, %36 : tensor<2x16x64xi1>, tensor<2x16x64xf32>
    return %37 : tensor<2x16x64xf32>
  }
  func.func private @_where(%arg0: tensor<2x16xi1>, %arg1: tensor<2x16xi32>, %arg2: tensor<2x16xi32>) -> tensor<2x16xi32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<2x16xi1>, tensor<2x16xi32>
    return %0 : tensor<2x16xi32>
  }
}
