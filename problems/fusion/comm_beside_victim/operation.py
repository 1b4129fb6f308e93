"""The next layer's weights are gathered while this layer multiplies by its own, gathered before."""
import torch
import torch.distributed as dist


def operation(
    x: torch.Tensor, w: torch.Tensor, shard: torch.Tensor, y: torch.Tensor, gathered: torch.Tensor
) -> None:
    """x: [rows, k], w: [columns, k] in float16, y: [rows, columns] in float32; shard: [n], gathered: [world, n]."""
    work = dist.all_gather_into_tensor(gathered, shard, async_op=True)
    torch.matmul(x.float(), w.float().t(), out=y)
    work.wait()


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n, tiles, depth in ((32768, 4, 4), (65536, 2, 2)):
        x = torch.randint(-8, 9, (tiles * 64, depth * 64), device="cuda").half()
        w = torch.randint(-8, 9, (512, depth * 64), device="cuda").half()
        shard = torch.randint(-(2**31), 2**31, (n,), dtype=torch.int32, device="cuda")
        gathered = torch.empty(dist.get_world_size() * n, dtype=torch.int32, device="cuda")
        operation(x, w, shard, torch.empty(tiles * 64, 512, device="cuda"), gathered)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
