"""All-gather of slices of the inner dimension, then the product with the rank's own b."""
import torch
import torch.distributed as dist


def operation(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """a: [k, rows], b: [64, world * k] in float16; c: [rows, 64] in float32."""
    gathered = a.new_empty(dist.get_world_size() * a.shape[0], a.shape[1])
    dist.all_gather_into_tensor(gathered, a)
    torch.matmul(gathered.t().float(), b.t().float(), out=c)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for tiles, depth in ((1, 1), (2, 1)):
        a = torch.randint(-8, 9, (depth * 64, tiles * 64), device="cuda").half()
        b = torch.rand(64, world * depth * 64, device="cuda").mul(2).sub(1).half()
        operation(a, b, torch.empty(tiles * 64, 64, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
